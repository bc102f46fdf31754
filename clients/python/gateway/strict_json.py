"""Strict JSON (TG-3, TG-4) and its two canonical forms."""

import hashlib
import json
import re
from typing import NoReturn

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

MAX_DEPTH = 32
MAX_BYTES = 262_144
MAX_INTEGER = 2**53 - 1

# Unicode White_Space, which differs from the characters that str.strip() and \s match.
WHITE_SPACE = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_RUN = re.compile(f"[{WHITE_SPACE}]+")
_EDGES = re.compile(f"^[{WHITE_SPACE}]+|[{WHITE_SPACE}]+$")


class BadJsonError(ValueError):
    """The reason why a text is rejected, in one sentence."""


def parse_strict(text: str, field: str, max_bytes: int = MAX_BYTES) -> Json:
    """Parses JSON; rejects duplicate and `__proto__` keys, NaN, numbers that a double cannot
    represent, lone surrogates, more than 32 levels, and more than `max_bytes`. Raises
    BadJsonError."""
    try:
        if len(text.encode()) > max_bytes:
            raise BadJsonError(f"{field} is larger than {max_bytes} bytes.")
        value: Json = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_int=_integer,
            parse_float=_float,
        )
        _check_depth(value, 0)
    except BadJsonError as error:
        raise BadJsonError(str(error).replace("It ", f"{field} ", 1)) from error
    except (ValueError, RecursionError) as error:
        raise BadJsonError(f"{field} is not well-formed.") from error
    return value


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    made: dict[str, Json] = {}
    for key, value in pairs:
        if key == "__proto__":
            raise BadJsonError("It has a key named __proto__.")
        if key in made:
            raise BadJsonError("It has the same key twice in one object.")
        made[key] = value
    return made


def _constant(_: str) -> NoReturn:
    raise BadJsonError("It has NaN or Infinity.")


def _integer(token: str) -> Json:
    # Numbers with thousands of digits are rejected before they are parsed.
    if len(token) > 17 or abs(int(token)) > MAX_INTEGER:
        raise BadJsonError("It has an integer outside ±(2^53 - 1); send it as a string.")
    return int(token)


def _float(token: str) -> float:
    value = float(token)
    if value in (float("inf"), float("-inf")):
        raise BadJsonError("It has a number too large to hold.")
    # The canonical form of this number is an integer that parsers would round.
    if value.is_integer() and MAX_INTEGER < abs(value) < 1e21:
        raise BadJsonError("It has an integer outside ±(2^53 - 1); send it as a string.")
    return value


def _check_depth(value: Json, depth: int) -> None:
    if isinstance(value, str):
        if any("\ud800" <= unit <= "\udfff" for unit in value):
            raise BadJsonError("It has a string with half a surrogate pair.")
        return
    if not isinstance(value, dict | list):
        return
    if depth >= MAX_DEPTH:
        raise BadJsonError(f"It is nested deeper than {MAX_DEPTH} levels.")
    for key in value if isinstance(value, dict) else ():
        _check_depth(key, depth)
    for member in value.values() if isinstance(value, dict) else value:
        _check_depth(member, depth + 1)


def trim(value: Json) -> Json:
    """The value with every string except keys trimmed (TG-3)."""
    if isinstance(value, str):
        return _EDGES.sub("", value)
    if isinstance(value, list):
        return [trim(member) for member in value]
    if isinstance(value, dict):
        return {key: trim(member) for key, member in value.items()}
    return value


def args_hash(value: Json) -> str:
    """12 hex digits of SHA-256 over `args_hash_text`, for loop detection and traces (TG-4)."""
    return hashlib.sha256(args_hash_text(value).encode()).hexdigest()[:12]


def args_hash_text(value: Json) -> str:
    """Returns the text that `args_hash` hashes: JSON with keys sorted by code point, no spaces, ASCII
    escapes, numbers as in RFC 8785, strings trimmed and their white space folded (TG-4)."""
    if isinstance(value, str):
        return json.dumps(_RUN.sub(" ", value).removeprefix(" ").removesuffix(" "))
    if isinstance(value, list):
        return f"[{','.join(args_hash_text(member) for member in value)}]"
    if isinstance(value, dict):
        # Python compares strings by code point.
        members = (f"{json.dumps(key)}:{args_hash_text(value[key])}" for key in sorted(value))
        return f"{{{','.join(members)}}}"
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    return number_text(value)


def number_text(value: int | float) -> str:
    """A number in the ECMAScript format, as RFC 8785 requires."""
    if isinstance(value, int) or (value.is_integer() and abs(value) < 1e21):
        return str(int(value))
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    leading = len(whole + fraction) - len((whole + fraction).lstrip("0"))
    digits = (whole + fraction).strip("0")
    # The value is 0.DIGITS times ten to the power of `point`.
    point = len(whole) + int(exponent or 0) - leading
    sign = "-" if value < 0 else ""
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{'+' if point > 0 else '-'}{abs(point - 1)}"


def sha256_hex(text: str | bytes) -> str:
    """SHA-256 of bytes, or of the UTF-8 of a text, in hex."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()
