"use strict";
/*
 * Draws the charts of the page and says when the page can be printed.
 *
 * <html data-ready="1">       fonts are loaded and every chart is drawn
 * <html data-failed="...">    the reason why not; the printer stops at it
 */
(() => {
  const root = document.documentElement;
  const config = { displayModeBar: false, responsive: true, doubleClick: "reset" };
  const plots = () => [...document.querySelectorAll(".plot.js-plotly-plot")];

  /* Charts measure their labels: drawn before the fonts are there, the same page would differ from run to run. */
  async function fonts() {
    await Promise.all([...document.fonts].map((face) => face.load()));
    const lost = [...document.fonts].filter((face) => face.status !== "loaded");
    if (lost.length) throw new Error("font not loaded: " + lost.map((face) => face.family).join(", "));
  }

  async function draw(script) {
    const figure = JSON.parse(script.textContent);
    await Plotly.newPlot(script.previousElementSibling, figure.data, figure.layout, config);
  }

  async function all() {
    await fonts();
    for (const script of document.querySelectorAll("script.chart-data")) await draw(script);
    root.dataset.ready = "1";
  }

  /* The keys in the rail show and hide the traces of one series in all charts. */
  function toggle(event) {
    const button = event.target.closest("button[data-series]");
    if (!button) return;
    const hide = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(hide));
    for (const plot of plots()) {
      const hit = plot.data.flatMap((t, i) => (t.legendgroup === button.dataset.series ? [i] : []));
      if (hit.length) Plotly.restyle(plot, { visible: !hide }, hit);
    }
  }

  /* Marks in the rail the section that is being read. */
  function follow() {
    const links = new Map([...document.querySelectorAll(".rail ol a")].map((a) => [a.hash.slice(1), a]));
    const seen = new IntersectionObserver(
      (entries) => {
        const entry = entries.find((e) => e.isIntersecting);
        if (!entry) return;
        for (const a of links.values()) a.classList.remove("here");
        links.get(entry.target.id)?.classList.add("here");
      },
      { rootMargin: "-60px 0px -70% 0px" },
    );
    for (const id of links.keys()) {
      const section = document.getElementById(id);
      if (section) seen.observe(section);
    }
    links.values().next().value?.classList.add("here");
  }

  /* A reader who prints from the browser gets charts as wide as the paper. The browser takes its picture when this
     returns, so the widths are set outright: Plotly.Plots.resize would come too late. */
  function fit(printing) {
    root.classList.toggle("printing", printing);
    for (const plot of plots()) {
      Plotly.relayout(plot, printing ? { width: plot.clientWidth } : { width: null, autosize: true });
    }
  }

  document.addEventListener("click", toggle);
  window.addEventListener("beforeprint", () => matchMedia("print").matches || fit(true));
  window.addEventListener("afterprint", () => root.classList.contains("printing") && fit(false));
  follow();
  all().catch((error) => {
    console.error(error);
    root.dataset.failed = String(error && error.message ? error.message : error);
  });
})();
