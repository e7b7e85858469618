"""Starts JupyterLab on the notebooks, with the store of this folder."""

import os
import shutil
import sys
from pathlib import Path

from rdmalab.report import notebooks_folder
from rdmalab.store import Store


def workspace() -> Path:
    """
    The folder of notebooks to work in: the checkout's own, else ``./notebooks`` with copies of the installed ones.

    A notebook that is there already is never overwritten.
    """
    shipped = notebooks_folder()
    if shipped.parent.joinpath("pyproject.toml").is_file():
        return shipped
    here = Path.cwd() / "notebooks"
    here.mkdir(exist_ok=True)
    for notebook in shipped.glob("*.ipynb"):
        if not (here / notebook.name).exists():
            shutil.copyfile(notebook, here / notebook.name)
    return here


def command(folder: Path, arguments: tuple[str, ...]) -> list[str]:
    """The command line of JupyterLab; *arguments* are the user's own."""
    sockets = ["--KernelManager.transport=ipc"] if _have_room_for_sockets() else []
    return [
        sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={folder}", *sockets,
        "--LabApp.default_url=/lab/tree/start.ipynb", *arguments,
    ]  # fmt: skip


def _have_room_for_sockets() -> bool:
    """Whether kernels can be reached by sockets in the file system, whose paths Linux holds to 107 bytes (unix(7))."""
    from jupyter_core.paths import jupyter_runtime_dir

    name = "kernel-01234567-89ab-cdef-0123-456789abcdef-ipc-5"
    return len(os.fsencode(f"{jupyter_runtime_dir()}/{name}")) <= 107


def start(store: Store, arguments: tuple[str, ...]) -> None:
    """Replaces this process by JupyterLab."""
    os.environ["RDMALAB_DB"] = str(store.path.absolute())
    settings = str(Path(__file__).with_name("jupyter_config"))  # no questions about news, nothing fetched
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, [settings, os.environ.get("JUPYTER_CONFIG_PATH")]))
    os.execv(sys.executable, command(workspace(), arguments))
