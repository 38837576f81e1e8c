"""Whether data has the form that a JSON Schema, a file of JSON or YAML, asks for, in one line.  An integer has no fraction here, and a
number is finite."""

from __future__ import annotations

import functools
import math
from pathlib import Path
from typing import Any

import yaml

from ..base.errors import Fail

# Of what is wrong, so many characters are printed.
_SHOWN = 200


def _finite(_checker: object, value: object) -> bool:
    return type(value) is int or (isinstance(value, float) and math.isfinite(value))


@functools.lru_cache(maxsize=None)
def validator(form: Path, part: str = "") -> Any:
    """What validates by the schema in the file `form`, or by its part `part`, a name in $defs."""
    # Here, for it takes a quarter of a second, and most commands validate nothing.
    import jsonschema

    text = yaml.safe_load(form.read_text(encoding="utf-8"))
    kind = jsonschema.Draft202012Validator
    types = kind.TYPE_CHECKER.redefine("number", _finite).redefine("integer", lambda _, value: type(value) is int)
    schema = {"$ref": f"#/$defs/{part}", "$defs": text["$defs"]} if part else text
    formats = jsonschema.FormatChecker(["regex"])
    return jsonschema.validators.extend(kind, type_checker=types)(schema, format_checker=formats)


def wrong(data: object, form: Path, part: str = "") -> str:
    """What is wrong with `data`, see validator(): "place: what: why", the last as a $comment says it, or ""."""
    import jsonschema

    error = jsonschema.exceptions.best_match(validator(form, part).iter_errors(data))
    if not error:
        return ""
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path)
    message, why = error.message, error.schema.get("$comment")
    if len(message) > _SHOWN:
        message = f"{message[: _SHOWN // 2]} ... {message[-_SHOWN // 2 :]}"
    return ": ".join(filter(None, (place.lstrip("."), message, why)))


def check(data: object, where: str | Path, form: Path, part: str = "") -> None:
    """Raise Fail with one line that begins with `where` if wrong() finds anything."""
    found = wrong(data, form, part)
    if found:
        raise Fail(f"{where}: {found}")


def read(path: Path, form: Path, part: str = "") -> Any:
    """What the YAML file `path` says, checked; its keys are text.  Raises Fail with one line."""
    try:
        data = _named(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise Fail(f"cannot read {path}: {' '.join(str(error).split())}") from None
    check(data, path, form, part)
    return data


def _named(data: Any) -> Any:
    """`data` with its keys as text: in YAML they may be integers, in JSON Schema they may not.  A version without quotes is a
    number, too, and 6.10 is 6.1."""
    if isinstance(data, dict):
        fraction = next((key for key in data if isinstance(key, float)), None)
        if fraction is not None:
            raise ValueError(f"the key {fraction} is a number with a point: write an integer, or text in quotes")
        return {str(key): _named(value) for key, value in data.items()}
    return [_named(value) for value in data] if isinstance(data, list) else data
