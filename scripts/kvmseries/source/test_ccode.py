"""Finding definitions in C."""

import pytest

from kvmseries.source import ccode

TEXT = """\
#define SIZE	\\
	2
enum colour {
	RED,
};
struct colours {
	enum colour	first;
};
typedef int (*paint_t)(struct colours *colours,
		       int size);
static int one(int size);

static int one(int size)
{
	if (size)
		return 0;

	return SIZE;
}

static gfn_t
two(struct colours *colours)
{
	return one(1);
}
"""


@pytest.mark.parametrize(
    "kind, name, line, end",
    [
        ("define", "SIZE", 1, "\t2\n"),
        ("enum", "colour", 3, "};\n"),
        ("struct", "colours", 6, "};\n"),
        ("typedef", "paint_t", 9, "size);\n"),
        ("function", "one", 13, "}\n"),
        ("head", "one", 13, "(int size)\n"),
        ("function", "two", 21, "}\n"),
    ],
)
def test_the_definition_and_not_a_declaration_or_a_use(kind, name, line, end):
    match = ccode.find(TEXT, kind, name)
    assert (TEXT.count("\n", 0, match.start()) + 1, match[0][-len(end) :]) == (line, end)
    # No line of what comes next.
    assert match[0].count("\n}") == (kind not in ("define", "typedef", "head"))


def test_what_is_not_there():
    absent = "function On, struct colour, enum colours, define SIZ, typedef paint, head SIZE"
    assert [ccode.find(TEXT, *words.split()) for words in absent.split(", ")] == [None] * 6
