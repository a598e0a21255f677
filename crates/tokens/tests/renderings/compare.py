"""Renders lines of `examples/renderings.rs` again, with Jinja2 set up as transformers sets it up, and compares.

    python compare.py TEMPLATES < lines

Of a line that Jinja2 refuses, ours is not looked at: such a call has no answer and no usage. Exit 1 where a text that
counts as exact differs. Not here: what an engine makes of a body before a template sees it.
"""

import collections
import datetime
import json
import pathlib
import sys

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

CLOCK = datetime.datetime(2025, 6, 28, 12)
SHOWN = 5


class Generation(jinja2.ext.Extension):
    """`{% generation %}` as a scope."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("told"), [], [], body).set_lineno(line)

    def told(self, caller):
        return caller()


def refuse(says):
    raise jinja2.TemplateError(says)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    made = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = refuse
    made.globals["strftime_now"] = CLOCK.strftime
    return made


def main():
    jinja = environment()
    folder = pathlib.Path(sys.argv[1])
    templates = {path.name: jinja.from_string(path.read_text("utf-8")) for path in folder.glob("*.jinja")}
    told = collections.Counter()
    differ = collections.Counter()
    for line in sys.stdin:
        case = json.loads(line)
        name = case["template"]
        told["cases"] += 1
        if "arguments" not in case:
            told["not counted"] += 1
            continue
        given = {"tools": None, "documents": None} | json.loads(case["arguments"])
        try:
            theirs = templates[name].render(**given)
        except Exception:  # whatever a template does wrong
            told["refused by Jinja2"] += 1
            continue
        if "text" not in case:
            told["refused by us alone"] += 1
            told["for: " + case["refused"][:80]] += 1
        elif theirs == case["text"]:
            told["equal"] += 1
        elif not case["exact"]:
            told["different, and said to be"] += 1
        else:
            told["different"] += 1
            differ[name] += 1
            if told["different"] <= SHOWN:
                at = next((i for i, (a, b) in enumerate(zip(theirs, case["text"])) if a != b), min(len(theirs), len(case["text"])))
                around = slice(max(0, at - 60), at + 60)
                print(f"{name}: {json.dumps(case['body'], ensure_ascii=False)[:2000]}")
                print(f"  theirs {theirs[around]!r}\n  ours   {case['text'][around]!r}")
    for what, many in told.most_common():
        print(f"{many:9} {what}")
    for name, many in differ.most_common():
        print(f"{many:9} different in {name}")
    return 1 if told["different"] or not told["equal"] else 0


if __name__ == "__main__":
    sys.exit(main())
