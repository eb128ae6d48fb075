"""How figures and headings are printed."""

from __future__ import annotations

from langshift import console


def heading(text: str) -> None:
    """Print a line above a table."""
    console.out.print(text, markup=False, style="bold", soft_wrap=True)


def line(text: str) -> None:
    """Print a line as it is: no markup is read from it."""
    console.out.print(text, markup=False, soft_wrap=True)


def figure(value: float | None, digits: int = 4) -> str:
    """A figure between 0 and 1 as ``.7802``; ``-`` where there is none."""
    if value is None:
        return "-"
    text = f"{value:.{digits}f}"
    return text.removeprefix("0") if text.startswith("0.") else text


def signed(change: float | None, digits: int = 4) -> str:
    """A change as ``+.0290`` or ``-.0040``; ``=`` where it does not show, ``-`` where there is none."""
    if change is None:
        return "-"
    shown = round(change, digits)
    if not shown:
        return "="
    return ("+" if shown > 0 else "-") + figure(abs(shown), digits)


def listed(parts: list[str]) -> str:
    """``a, b and c``."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
