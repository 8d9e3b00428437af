"""Output for terminals and files whose encoding lacks a character: a similar one instead of an error."""

from __future__ import annotations

import codecs
import sys
import unicodedata

# Letters as they are typed where there is no Greek; signs in words of ASCII.
LETTERS = {
    "α": "a", "β": "b", "γ": "g", "δ": "d", "ε": "e", "ζ": "z", "η": "eta", "θ": "theta", "κ": "k", "λ": "l",
    "μ": "u", "ν": "n", "π": "pi", "ρ": "r", "σ": "s", "τ": "t", "φ": "phi", "χ": "chi", "ψ": "psi", "ω": "w",
    "Γ": "G", "Δ": "D", "Θ": "Theta", "Λ": "L", "ξ": "xi", "Ξ": "Xi", "Π": "Pi", "Σ": "S", "Φ": "Phi", "Ψ": "Psi",
    "Ω": "W",
}  # fmt: skip
SIGNS = {
    "×": "x", "·": "*", "−": "-", "–": "-", "—": "-", "…": "...", "≤": "<=", "≥": ">=", "≠": "!=", "≈": "~", "→": "->",
    "←": "<-", "◀": "<", "°": "deg", "√": "sqrt", "∂": "d", "∞": "inf", "±": "+-", "‖": "||", "⟨": "<", "⟩": ">",
    "µ": "u", "′": "'", "“": '"', "”": '"', "‘": "'", "’": "'", "ŝ": "s", "✓": "ok", "✗": "x", "∈": "in", "█": "#",
}  # fmt: skip
TABLE = LETTERS | SIGNS


def similar(text: str) -> str:
    """The text in ASCII: ω as w, ² as 2, é as e; a character nothing resembles as a question mark."""
    out = []
    for character in text:
        plain = TABLE.get(character) or unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
        out.append(plain or ("" if unicodedata.combining(character) else "-" if "─" <= character <= "╿" else "?"))
    return "".join(out)


def _handler(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return similar(error.object[error.start : error.end]), error.end


def transliterate_what_cannot_be_encoded() -> None:
    """Let standard output and error print what their encoding lacks by similar characters."""
    codecs.register_error("armdyn", _handler)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure") and stream.errors == "strict":
            stream.reconfigure(errors="armdyn")
