"""The languages of reports: one catalogue of messages a language, in gettext's own format.

The words of the program are the English ones; ``locale/LANG/LC_MESSAGES/rdmalab.po`` translates them whole sentence by
whole sentence. Catalogues are read as text, so that a translator needs no build step.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path

from rdmalab.errors import UsageError

LOCALE = Path(__file__).with_name("locale")
LANGUAGES = ("en", "zh")


@cache
def translator(lang: str) -> Callable[[str], str]:
    """
    The function that puts a message into a language; an English message is its own translation.

    Raises:
        UsageError: There is no such language.
    """
    if lang not in LANGUAGES:
        raise UsageError(f"no report in language '{lang}'; there is: {', '.join(LANGUAGES)}")
    if lang == "en":
        return str
    from babel.messages.pofile import read_po

    with (LOCALE / lang / "LC_MESSAGES" / "rdmalab.po").open("rb") as stream:
        catalogue = {m.id: m.string for m in read_po(stream, locale=lang) if m.id and m.string}
    return lambda message: str(catalogue.get(message, message))


def marked(message: str) -> str:
    """
    *message* as it is, marked for the catalogue: to be imported as ``_`` where texts are only kept.

    Who shows such a text puts it through :func:`translator`.
    """
    return message
