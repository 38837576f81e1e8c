"""HTML that cannot forget to escape: text is escaped unless an element made it."""

import html


class Html(str):
    """A string that is HTML already."""


def element(name, *content, **attributes):
    """An HTML element.

    content: strings (escaped), Html (as it is), None (left out) and lists of these.
    attributes: `class_` stands for class, `_` in others for "-"; None and False leave one out.
    """
    words = [name]
    for key, value in attributes.items():
        if value is not None and value is not False:
            key = key.rstrip("_").replace("_", "-")
            words.append(f'{key}="{html.escape(str(value))}"')
    return Html(f"<{' '.join(words)}>{flat(content)}</{name}>")


def flat(content):
    """Html of nested content, as element() takes it."""
    if content is None:
        return Html()
    if isinstance(content, (list, tuple)):
        return Html("".join(flat(item) for item in content))
    return content if isinstance(content, Html) else Html(html.escape(str(content)))
