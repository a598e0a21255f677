"""Holds the gate's counts against those of a real vLLM, template by template. How to run it: README.md beside this file.

Invariant: a body follows from the seed, its template's name, its kind and its number; every call is looked at in the ledger by
its id, and how sure the gate was of its count is read from its metrics right after it. Exits with 1 when a prompt that was marked
exact differs.
Not here: the bodies (`bodies.py`), changing a running server's template (`switch.py`), vLLM itself, which somebody else starts.
"""

import argparse
import collections
import csv
import http.client
import io
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse

import bodies

SPECIAL = {"bos_token": "<s>", "eos_token": "</s>"}
OUTPUT = {bodies.CHAT: "max_tokens", bodies.TEXT: "max_tokens", bodies.RESPONSES: "max_output_tokens", bodies.MESSAGES: "max_tokens"}
DIALECT = {"chat": bodies.CHAT, "completions": bodies.TEXT, "responses": bodies.RESPONSES, "messages": bodies.MESSAGES, "embeddings": bodies.EMBEDDINGS}
RESULT = re.compile(rb'^tollgate_counting_exchanges_total\{([^}]*)\} (\d+)', re.MULTILINE)
# Templates whose whole point is one row: what a template does to content, text and names.
OWN = {
    "own-iterable": "{% if tools is iterable and tools | length > 0 %}T{{ tools | length }}{% endif %}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}",
    "own-parts": "{% for m in messages %}<{{ m.role }}>{% for p in m.content if p.type == 'text' %}{{ p.text }}|{% endfor %}{% endfor %}",
    "own-slice": "{% for m in messages[1:] %}<{{ m.role }}>{% for p in m['content'][:2] %}{{ p['text'] }}|{% endfor %}{% endfor %}{{ messages[0].role }}",
    "own-selectattr": "{% for m in messages %}{% for p in m.content | selectattr('type', 'equalto', 'text') %}{{ p.text }}{% endfor %}{% endfor %}",
    "own-macro": "{% macro show(c) %}{% if c is string %}{{ c }}{% else %}{% for p in c %}[{{ p.text }}]{% endfor %}{% endif %}{% endmacro %}{% for m in messages %}{{ m.role }}{{ show(m.content) }}{% endfor %}",
    "own-tojson": "{{ messages | tojson }}{{ (tools or []) | tojson }}{{ (documents or none) | tojson }}",
    "own-printed": "{{ messages }}{{ tools }}",
    "own-indented": "{% for t in tools or [] %}{{ t | tojson(indent=2) }}{% endfor %}{% for m in messages %}{{ m | tojson(indent=4, sort_keys=true) }}{% endfor %}",
    "own-joined": "{% for m in messages %}{{ m.role ~ ': ' ~ m.content ~ '\\n' }}{% for c in m.tool_calls or [] %}{{ c.function.name ~ c.function.arguments }}{% for k, v in c.function.arguments.items() %}{{ k ~ '=' ~ v }}{% endfor %}{% endfor %}{% endfor %}",
    "own-items": "{% for m in messages %}{% for k, v in m.items() %}{{ k }}={{ v }};{% endfor %}{% endfor %}{% for t in tools or [] %}{% for k, v in t.function | dictsort %}{{ k }}:{{ v }}{% endfor %}{% endfor %}",
    "own-first-system": "{% if messages[0].role == 'system' %}{% set system = messages[0].content | trim %}{% set rest = messages[1:] %}{% else %}{% set system = '' %}{% set rest = messages %}{% endif %}{% for m in rest %}{% if m.role == 'system' %}{{ raise_exception('System must be first') }}{% endif %}{% if loop.first %}{{ system }}{% endif %}[{{ m.role | upper }}]{{ m.content }}{% endfor %}",
    "own-alternating": "{{ bos_token }}{% set ns = namespace(at=0) %}{% for m in messages %}{% if m.role in ['user', 'assistant'] %}{% set ns.at = ns.at + 1 %}{% endif %}{{ ns.at }}{{ m.role[0] | capitalize }}: {{ m.content | default('', true) | trim }}{{ eos_token }}{% endfor %}{% if add_generation_prompt %}A:{% endif %}",
    "own-dated": "{% if strftime_now is defined %}{{ strftime_now('%d %b %Y') }}{% endif %}{% for m in messages %}\n{{ m.role }}\t{{ m.content }}{% if m.reasoning_content is defined %}<{{ m.reasoning_content }}>{% endif %}{% endfor %}",
    "own-developer": "{% for m in messages %}{% if m.role == 'developer' %}D{% elif m.role == 'system' %}S{% else %}{{ m.role }}{% endif %}({{ m.content }}){{ m.name }}{{ m.tool_call_id }}{% endfor %}",
    "own-counts": "{% for m in messages %}{{ loop.index0 }}/{{ loop.length }} {{ m.content | length }} {{ m.content[:7] }} {{ m.content[-3:] }}{{ m.content.split('\\n')[0] | title }}{{ m.content.startswith('h') }}\n{% endfor %}",
}


class Target:
    """A model's name at both, what the gate counts it with, and what the server is switched to."""

    def __init__(self, label, tokenizer, switch):
        self.label, self.tokenizer, self.switch, self.name = label, tokenizer, switch, None


def targets_of(options, folder, files):
    """Templates of the folders, our own, and pairs by name."""
    texts = {}
    for given in options.templates or []:
        for path in sorted(pathlib.Path(given).glob("*.jinja")):
            texts[path.stem] = path.read_text("utf-8")
    for name in ("chatml", "headers"):
        texts[name] = (options.vectors / f"{name}.jinja").read_text("utf-8")
    texts |= OWN
    made = []
    for label, text in texts.items():
        path = folder / f"{label}.jinja"
        path.write_bytes(text.encode())
        made.append(Target(label, files | {"template": str(path)}, {"template": text}))
    rng = random.Random(f"{options.seed} pairs")
    real = [label for label in texts if not label.startswith("own-")]
    for number in range(6):
        default, tool_use = rng.sample(real, 2)
        made.append(named(f"named-{default}+{tool_use}", {"default": texts[default], "tool_use": texts[tool_use]}, folder, f"named-{number}", files))
    return made


def named(label, templates, folder, file, files):
    settings = json.loads(pathlib.Path(files["settings"]).read_text()) if "settings" in files else dict(SPECIAL)
    settings["chat_template"] = [{"name": name, "template": text} for name, text in templates.items()]
    path = folder / f"{file}.json"
    path.write_text(json.dumps(settings))
    return Target(label, {"file": files["file"], "settings": str(path)}, {"named": templates})


def vectors_of(options, folder, files):
    """Each vector with its own template: (target, label, path, body, tokens); the number is of vLLM's own functions."""
    found = []
    text = (options.vectors / "habits.txt").read_text("utf-8")
    for at, block in enumerate(re.split(r"^=== ", text, flags=re.MULTILINE)[1:]):
        head, rest = block.split("\n", 1)
        given, body, told = rest.split("\n---\n", 2)
        lines = given.split("\n")
        template = json.loads(lines[0])
        server = json.loads(lines[1]) if len(lines) > 1 else {}
        tokens = re.match(r"tokens=(\d+)", told)
        dialect = head.rsplit(": ", 1)[1]
        label = "vector " + head.rsplit(": ", 1)[0]
        if isinstance(template, str):
            path = folder / f"vector-{at}.jinja"
            path.write_bytes(template.encode())
            target = Target(label, files | {"template": str(path)}, {"template": template})
        else:
            target = named(label, template, folder, f"vector-{at}", files)
        if server:
            target.switch = target.switch | {"defaults": server.get("default_chat_template_kwargs", {})}
        found.append((target, bool(server), DIALECT[dialect], body, int(tokens[1]) if tokens else None))
    return found


class Wire:
    """One connection that is kept."""

    def __init__(self, url):
        at = urllib.parse.urlsplit(url)
        self.host, self.port, self.connection = at.hostname, at.port, None

    def ask(self, method, path, body=None, head=()):
        for attempt in range(3):
            try:
                self.connection = self.connection or http.client.HTTPConnection(self.host, self.port, timeout=180)
                self.connection.request(method, path, body, dict(head))
                answer = self.connection.getresponse()
                try:
                    return answer.status, answer.read()
                except http.client.IncompleteRead as cut:  # vLLM broke off
                    self.connection = None
                    return answer.status, cut.partial
            except (http.client.HTTPException, OSError):
                self.connection = None
                if attempt == 2:
                    raise
        return None


def results(admin):
    """How many prompts of each result there were."""
    found = collections.Counter()
    for labels, many in RESULT.findall(admin.ask("GET", "/metrics")[1]):
        if b'direction="input"' in labels:
            found[re.search(rb'result="([a-z_]+)"', labels)[1].decode()] += int(many)
    return found


class Unusable(Exception):
    """A template with which vLLM does not start."""


class Run:
    def __init__(self, options, folder, targets):
        self.options, self.folder = options, folder
        self.url = options.url.rstrip("/")
        self.engine = Wire(self.url)
        self.gate = Wire(f"http://127.0.0.1:{options.port}")
        self.admin = Wire(f"http://127.0.0.1:{options.port + 1}")
        self.sent, self.rows, self.now, self.switched, self.failed = [], {}, None, None, False
        names = [one["id"] for one in json.loads(self.engine.ask("GET", "/v1/models")[1])["data"]]
        if not options.fixed and len(names) < len(targets):
            sys.exit(f"{len(targets)} templates and {len(names)} served names: start vLLM with more (--served-model-name)")
        for target, name in zip(targets, names if not options.fixed else names * len(targets)):
            target.name = name
        document = {
            "listen": {"data": f"127.0.0.1:{options.port}", "admin": f"127.0.0.1:{options.port + 1}"},
            "access_log": "off",
            "backends": {"vllm": {"url": f"{self.url}/v1"}},
            "routes": [{"workload": "compare", "backend": "vllm"}],
            "tokenizers": {target.name: target.tokenizer for target in targets},
            "ledger": {"path": str(folder / "usage.db")},
        }
        self.path = folder / "tollgate.yaml"
        self.path.write_text(json.dumps(document))  # JSON is YAML

    def start(self):
        try:
            Wire(f"http://127.0.0.1:{self.options.port + 1}").ask("GET", "/readyz")
            sys.exit(f"something answers at port {self.options.port + 1} already: another --port")
        except OSError:
            pass
        with open(self.folder / "gate.log", "wb") as log:
            self.process = subprocess.Popen([self.options.gate, "run", "-c", str(self.path)], stdout=log, stderr=log)
        for _ in range(300):
            try:
                if Wire(f"http://127.0.0.1:{self.options.port + 1}").ask("GET", "/readyz")[0] == 200:
                    break
            except OSError:
                time.sleep(0.1)
            if self.process.poll() is not None:
                sys.exit(f"the gate does not start: {self.folder / 'gate.log'}")
        else:
            self.process.kill()
            sys.exit(f"the gate does not start: {self.folder / 'gate.log'}")
        self.now = results(self.admin)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(120)
        exported = subprocess.run([self.options.gate, "usage", "export", "--ledger", str(self.folder / "usage.db")], check=True, capture_output=True, text=True).stdout
        self.rows = {row["request_id"]: row for row in csv.DictReader(io.StringIO(exported))}

    def call(self, target, kind, path, text, note=None):
        """Sends one body and notes how sure the gate was."""
        if self.failed:
            self.wait_for_engine()
        if not self.options.fixed and self.switched is not target:
            status, told = self.engine.ask("POST", "/switch", json.dumps(target.switch), {"content-type": "application/json"})
            if status != 200:
                raise Unusable(f"vLLM does not start with {target.label}: {told[:300]}")
            self.switched = target
        id = f"call-{len(self.sent)}"
        head = {"content-type": "application/json", "x-workload-app": "compare", "anthropic-version": "2023-06-01", "x-request-id": id}
        status, answer = self.gate.ask("POST", path, text.encode("utf-8", "surrogatepass"), head)
        self.failed = status >= 500 or b"EngineCore" in answer
        mark = self.mark(1.0 if status == 200 else 0.15)
        self.sent.append({"id": id, "target": target.label, "kind": kind, "path": path, "body": text, "status": status, "mark": mark, "note": note, "answer": answer[:400].decode("utf-8", "replace"), "spec": target.tokenizer})

    def wait_for_engine(self):
        """An engine that died is started again by whoever started it; it has its first template then."""
        for _ in range(300):
            try:
                if self.engine.ask("GET", "/health")[0] == 200:
                    break
            except (OSError, http.client.HTTPException):
                pass
            self.switched = None
            time.sleep(1)
        else:
            raise ConnectionError("the engine is gone")

    def mark(self, patience):
        until = time.monotonic() + patience
        while True:
            found = results(self.admin)
            more = found - self.now
            if more or time.monotonic() > until:
                self.now = found
                return "+".join(more) or "none"
            time.sleep(0.004)


def finished(path, body, rng):
    """The members that every call has: model, output cap, stream."""
    if path == bodies.EMBEDDINGS:
        return body
    body.setdefault(OUTPUT[path], rng.choice([1, 1, 2, 3]))
    body["stream"] = rng.random() < 0.5
    if body["stream"] and path in (bodies.CHAT, bodies.TEXT) and rng.random() < 0.9:
        body["stream_options"] = {"include_usage": True}
    return body


def made(seed, target, kind, number, maker):
    rng = random.Random(f"{seed} {target.label} {kind} {number}")
    path, body = maker(rng)
    body = finished(path, body, rng)
    return path, bodies.written({"model": target.name} | body, rng)


def plan(options, histories):
    """The kinds of calls that each template gets, and how many."""
    for number in range(options.embeddings):
        yield "row 12", number, bodies.embedding
    for number in range(options.ordinary):
        yield "ordinary", number, lambda rng: bodies.ordinary(rng, histories)
    for number in range(options.odd):
        yield "odd", number, bodies.odd
    for row, maker in bodies.ROWS.items():
        for number in range(0 if options.rows_only and row not in options.rows_only else options.rows):
            yield f"row {row}", number, maker


def histories_of(folder):
    found = []
    for path in sorted(pathlib.Path(folder).rglob("*.json")) if folder else []:
        answer = json.loads(path.read_text("utf-8"))["answer_generation"]
        for messages in answer.get("train_messages") or []:
            functions = answer["function"]
            if sum(len(json.dumps(one)) for one in messages) + len(json.dumps(functions)) < 14_000:
                found.append({"functions": functions, "messages": messages})
    return found


def run(options):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tollgate-vllm-"))
    files = {"file": str(options.tokenizer or options.vectors / "tiny_tokenizer.json")}
    settings = options.settings
    if settings is None:
        settings = folder / "settings.json"
        settings.write_text(json.dumps(SPECIAL))
    files["settings"] = str(settings)
    histories = histories_of(options.histories)
    vectors = []
    if options.fixed == "harmony":
        targets = [Target("harmony", "harmony", None)]
    elif options.fixed == "own":  # the template in the settings
        targets = [Target(options.label, files, None)]
    elif options.fixed:
        template = pathlib.Path(options.fixed).resolve()
        targets = [Target(options.label or template.stem, files | {"template": str(template)}, None)]
    else:
        targets = targets_of(options, folder, files)
        if options.only:
            targets = [target for target in targets if re.search(options.only, target.label)]
        vectors = [] if options.no_vectors else vectors_of(options, folder, files)
    print(f"seed {options.seed}, {len(targets)} templates, {len(vectors)} vectors, {len(histories)} genuine histories, files in {folder}", flush=True)
    it = Run(options, folder, targets + [vector[0] for vector in vectors])
    it.start()
    began = time.monotonic()
    try:
        for target, server, path, body, tokens in vectors:
            for stream in (False, True):
                tree = body.rstrip()
                more = {"model": target.name} | ({} if path == bodies.EMBEDDINGS else {OUTPUT[path]: 1, "stream": stream} | ({"stream_options": {"include_usage": True}} if stream and path in (bodies.CHAT, bodies.TEXT) else {}))
                text = json.dumps(more, separators=(",", ":"))[:-1] + "," + tree[1:]
                if path != bodies.EMBEDDINGS or not stream:
                    it.call(target, "server default" if server else "vector", path, text, {"tokens": tokens})
        for target in targets:
            try:
                for kind, number, maker in plan(options, histories):
                    it.call(target, kind, *made(options.seed, target, kind, number, maker))
            except Unusable as why:
                print(why, flush=True)
            print(f"{len(it.sent):6} calls, {time.monotonic() - began:5.0f} s, {target.label}", flush=True)
            if options.until and time.strftime("%H:%M") >= options.until:
                print("out of time")
                break
    except (OSError, http.client.HTTPException, KeyboardInterrupt) as error:
        print(f"stopped early: {error!r}")
    it.stop()
    return judge(options, folder, it)


def verdict(call, row):
    """What became of a call, and both numbers."""
    if row is None:
        return "no row", None, None
    reported, counted = (int(row[name]) if row[name] != "" else None for name in ("prompt_reported", "prompt_counted"))
    if call["status"] != 200 or '"error"' in call["answer"][:200] and reported is None:
        return "refused", reported, counted
    if counted is None:
        return "uncounted", reported, counted
    if reported is None:
        return "not reported", reported, counted
    return ("equal" if reported == counted else "different"), reported, counted


def judge(options, folder, it):
    told, bad = collections.Counter(), []
    by = collections.defaultdict(collections.Counter)
    place, lines = pathlib.Path(options.out or folder / "calls.jsonl"), []
    for call in it.sent:
        row = it.rows.get(call["id"])
        what, reported, counted = verdict(call, row)
        mark = call["mark"]
        streamed = '"stream":true' in call["body"].replace(" ", "")
        call |= {"verdict": what, "reported": reported, "counted": counted, "uncounted": row and row["prompt_uncounted"], "streamed": streamed}
        if call["note"] and what in ("equal", "different", "uncounted") and reported not in (None, call["note"]["tokens"]) and call["note"]["tokens"] is not None:
            call["vector_differs"] = True
            told["vectors of which vLLM reports another number"] += 1
        lines.append(json.dumps(call, ensure_ascii=True) + "\n")
        key = f"{what}, {mark}" if what in ("equal", "different", "uncounted") else what
        told[key] += 1
        by[f"kind     {call['kind']}"][key] += 1
        by[f"dialect  {call['path']}{' streamed' if streamed else ''}"][key] += 1
        by[f"template {call['target'] if not call['target'].startswith('vector') else 'vectors'}"][key] += 1
        if what == "different":
            by["wrong template " + call["target"]][key] += 1
            if mark == "exact" and call["kind"] != "server default":
                bad.append(call)
    place.write_text("".join(lines))
    for group in sorted(by):
        if not group.startswith("wrong"):
            print(f"{group}: " + ", ".join(f"{many} {what}" for what, many in by[group].most_common()))
    print()
    for what, many in told.most_common():
        print(f"{many:6} {what}")
    ordinary = by["kind     ordinary"]
    answered = sum(many for what, many in ordinary.items() if what.split(",")[0] in ("equal", "different", "uncounted", "not reported"))
    exact = sum(1 for call in it.sent if call["kind"] == "ordinary" and call["mark"] == "exact" and call["verdict"] in ("equal", "different", "not reported"))
    if answered:
        print(f"ordinary traffic: {exact} of {answered} answered calls marked exact, {100 * exact / answered:.2f} %")
    print(f"marked exact and different: {len(bad)}; all calls in {place}")
    for call in bad[: options.shown]:
        print(f"{call['id']} {call['target']} {call['kind']} {call['path']} reported {call['reported']} counted {call['counted']}\n  {call['body'][:1500]}")
    return 1 if bad else 0


def make_model(options):
    """A Llama of a few thousand parameters; its weights are vLLM's dummies. With `--kind gpt-oss` one that speaks Harmony."""
    folder = pathlib.Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    source = options.tokenizer or options.vectors / "tiny_tokenizer.json"
    tokenizer = json.loads(pathlib.Path(source).read_text("utf-8"))
    size = max([*tokenizer["model"]["vocab"].values(), *(one["id"] for one in tokenizer.get("added_tokens", []))]) + 1 if isinstance(tokenizer["model"]["vocab"], dict) else len(tokenizer["model"]["vocab"])
    shape = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2}
    shape |= {"num_key_value_heads": 2, "head_dim": 32, "vocab_size": size, "max_position_embeddings": 32768}
    marks = {"bos_token_id": 0, "eos_token_id": 1, "architectures": ["LlamaForCausalLM"], "model_type": "llama"}
    rest = {"rms_norm_eps": 1e-5, "tie_word_embeddings": False, "dtype": "float32", "hidden_act": "silu"}
    if options.kind == "gpt-oss":
        marks |= {"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "num_local_experts": 2, "num_experts_per_tok": 1, "sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"], "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}, "swiglu_limit": 7.0, "attention_bias": True, "eos_token_id": 200002, "pad_token_id": 199999}
        shape["vocab_size"] = 201088
    (folder / "config.json").write_text(json.dumps(shape | marks | rest))
    (folder / "tokenizer.json").write_bytes(pathlib.Path(source).read_bytes())
    settings = SPECIAL | {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    if options.settings:
        settings = json.loads(options.settings.read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    if options.template:
        (folder / "chat_template.jinja").write_text(pathlib.Path(options.template).read_text())


def main():
    here = pathlib.Path(__file__).resolve().parents
    vectors = here[4] / "vectors" / "tokens" if len(here) > 4 else here[0]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    model = commands.add_parser("model", help="make a model that vLLM can serve with --load-format dummy")
    model.add_argument("folder")
    model.add_argument("--kind", choices=["llama", "gpt-oss"], default="llama")
    model.add_argument("--template", help="its chat template (else the server's --chat-template)")
    runs = commands.add_parser("run", help="compare")
    for one in (model, runs):
        one.add_argument("--vectors", type=pathlib.Path, default=vectors, help="the folder vectors/tokens")
        one.add_argument("--tokenizer", type=pathlib.Path, help="a tokenizer.json in place of tiny_tokenizer.json")
        one.add_argument("--settings", type=pathlib.Path, help="a tokenizer_config.json")
    runs.add_argument("--url", required=True, help="the engine, without /v1")
    runs.add_argument("--gate", default=os.environ.get("TOLLGATE_BIN", "tollgate"))
    runs.add_argument("--port", type=int, default=18431, help="the gate's port; its admin has the next")
    runs.add_argument("--seed", default="18")
    runs.add_argument("--templates", action="append", help="a folder of *.jinja; may be said again")
    runs.add_argument("--only", help="only templates whose name this expression finds")
    runs.add_argument("--fixed", help="the server is not switched: `harmony`, a template's file, or `own` for the one in --settings")
    runs.add_argument("--label", help="a name for what is fixed")
    runs.add_argument("--histories", help="a folder of ToolBench answer files")
    runs.add_argument("--ordinary", type=int, default=30, help="ordinary calls for each template")
    runs.add_argument("--odd", type=int, default=10, help="hostile calls for each template")
    runs.add_argument("--rows", type=int, default=2, help="calls of each row for each template")
    runs.add_argument("--rows-only", type=int, nargs="*", help="only these rows")
    runs.add_argument("--embeddings", type=int, default=0, help="calls of row 12; the server must be a pooling one")
    runs.add_argument("--no-vectors", action="store_true")
    runs.add_argument("--until", help="HH:MM at which no further template is begun")
    runs.add_argument("--shown", type=int, default=40)
    runs.add_argument("--out", help="where each call goes, a JSON object a line")
    options = parser.parse_args()
    for name in ("vectors", "tokenizer", "settings"):
        if getattr(options, name):
            setattr(options, name, getattr(options, name).resolve())
    sys.exit(make_model(options) if options.command == "model" else run(options))


if __name__ == "__main__":
    main()
