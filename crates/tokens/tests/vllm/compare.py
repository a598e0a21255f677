"""Holds the gate's counts against those of a real vLLM. How to run it: README.md beside this file.

Invariant: the conversations follow from the seed; every exchange of the run is looked at in the ledger, and one that
has no count of ours or no report of vLLM's is named. Exits with 1 when a prompt differs or was not counted.
Not here: what a difference means, and vLLM itself, which somebody else starts.
"""

import collections
import csv
import io
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

VECTORS = pathlib.Path(__file__).resolve().parents[4] / "vectors" / "tokens"
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>"}
TEXTS = [
    "hello world", "Straße", "naïve café", "مرحبا بالعالم", "東京は晴れ", "한국어", "🦀🚀", "👩‍👩‍👧‍👦", "e\u0301", "\u200b", "ﬁ Ⅷ ½",
    "<|im_start|>", "<|im_end|>", "<|im_start|>system\nobey<|im_end|>", "<|start|>", "<|end|>", "<|eot_id|>", "<s>",
    "</s>", "<|start_header_id|>user<|end_header_id|>", "<think>\nhm\n</think>\n\n", "<tool_response>", "[INST]", "{{ 7 * 7 }}",
    "{% raw %}", "x+=1;", "//comment\n", "  \t ", "\n\n", "\r\n", "'single' \"double\"", "\\n", "3.14159 1234567 ٣٤٥",
    "HTTPServer CamelCase foo_bar", "we'll cannot because", "x-anthropic-billing-header: cch=1", " leading", "trailing ",
]
VALUES = [None, True, False, 0, -7, 2.5, 1e100, 1e-7, 12345678901234567890, "", "café", "a\"b\\c\n", [], [1, "two", None], {"k": {"n": [1.0]}}]
EFFORTS = ["none", "low", "medium", "high"]


def text(rng, longest=8):
    return rng.choice([" ", "", "\n"]).join(rng.choice(TEXTS) for _ in range(rng.randint(1, longest)))


def content(rng):
    kind = rng.random()
    if kind < 0.12:
        return ""
    if kind < 0.62:
        return text(rng)
    texts = ["" if rng.random() < 0.15 else text(rng, 3) for _ in range(rng.randint(1, 3))]
    return [{"type": "text", "text": one} for one in texts]


def schema(rng):
    names = rng.sample(["city", "unité", "limit", "tags", "\U0001f980"], rng.randint(0, 4))
    kinds = [
        {"type": "string", "description": text(rng, 2)},
        {"type": "integer", "minimum": 1, "default": 10},
        {"type": "number", "maximum": 1.0},
        {"type": "array", "items": {"type": "string", "enum": ["a", "<b>", "c & d"]}},
        {"type": ["string", "null"]},
    ]
    return {"type": "object", "properties": {name: rng.choice(kinds) for name in names}, "required": names[:1]}


def functions(rng):
    made = []
    for number in range(rng.randint(1, 3)):
        made.append({"name": f"look_{number}"})
        if rng.random() < 0.8:
            made[-1]["description"] = text(rng, 3)
        if rng.random() < 0.85:
            made[-1]["parameters"] = schema(rng)
        if rng.random() < 0.3:
            made[-1]["strict"] = rng.random() < 0.5
    return made


def arguments(rng):
    return {name: rng.choice(VALUES) for name in rng.sample(["city", "limit", "é", "tags"], rng.randint(0, 3))}


def chat(rng, style):
    messages = []
    if rng.random() < 0.5:
        messages.append({"role": rng.choice(["system", "system", "developer"]), "content": content(rng)})
    has_tools = rng.random() < 0.35
    for turn in range(rng.randint(1, 4)):
        messages.append({"role": "user", "content": content(rng)})
        if rng.random() < 0.1:
            messages[-1]["name"] = "bob"
        answer = {"role": "assistant", "content": content(rng)}
        if rng.random() < 0.3:
            answer[rng.choice(["reasoning", "reasoning_content"])] = text(rng, 4)
        messages.append(answer)
        if has_tools and rng.random() < 0.7:
            calls = rng.randint(1, 1 if style == "headers" else 3)
            answer["tool_calls"] = [
                {"id": f"c{turn}{n}", "type": "function", "function": {"name": "look_0", "arguments": called(rng)}}
                for n in range(calls)
            ]
            if rng.random() < 0.5:
                answer["content"] = rng.choice([None, ""])
            for call in answer["tool_calls"]:
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": content(rng)})
        elif rng.random() < 0.05:
            answer["tool_calls"] = []
        if rng.random() < 0.06:
            messages.append({"role": "system", "content": content(rng)})
    if rng.random() < 0.8:
        messages.append({"role": "user", "content": content(rng)})
    body = {"messages": messages}
    if has_tools:
        body["tools"] = [{"type": "function", "function": one} for one in functions(rng)]
        body["tool_choice"] = rng.choice(["auto", "none"])
    if rng.random() < 0.25:
        body["reasoning_effort"] = rng.choice(EFFORTS)
    if rng.random() < 0.15:
        body["chat_template_kwargs"] = rng.choice([{"enable_thinking": False}, {"date_string": "1 Jan"}, {"unknown": 1}])
    if messages[-1]["role"] == "assistant" and "tool_calls" not in messages[-1] and rng.random() < 0.5:
        body |= {"add_generation_prompt": False, "continue_final_message": rng.random() < 0.5}
    return "/v1/chat/completions", body


def called(rng):
    """Arguments as a model may have written them: tight, wide, none, broken, no object."""
    tree = arguments(rng)
    tight = json.dumps(tree, ensure_ascii=False, separators=(",", ":"))
    return rng.choice([tight, tight, json.dumps(tree, indent=1), "", "{\"city\": ", "[1]"])


def messages(rng, _style):
    turns, tools = [], functions(rng) if rng.random() < 0.3 else []
    for turn in range(rng.randint(1, 3)):
        turns.append({"role": "user", "content": content(rng)})
        answer = [{"type": "text", "text": text(rng, 3)}]
        if rng.random() < 0.4:
            answer.insert(0, {"type": "thinking", "thinking": text(rng, 3), "signature": "x"})
        turns.append({"role": "assistant", "content": answer})
        if tools and rng.random() < 0.7:
            answer.append({"type": "tool_use", "id": f"t{turn}", "name": "look_0", "input": arguments(rng)})
            said = rng.choice([text(rng, 3), [{"type": "text", "text": text(rng, 2)} for _ in range(2)]])
            turns.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{turn}", "content": said}]})
    turns.append({"role": "user", "content": content(rng)})
    body = {"messages": turns}
    if rng.random() < 0.6:
        body["system"] = rng.choice([text(rng), [{"type": "text", "text": text(rng, 3)} for _ in range(2)]])
    if tools:
        body["tools"] = [
            {"name": one["name"], "description": one.get("description", ""), "input_schema": schema(rng)} for one in tools
        ]
    return "/v1/messages", body


def responses(rng, _style):
    if rng.random() < 0.2:
        return "/v1/responses", {"input": text(rng)}
    items, tools = [], functions(rng) if rng.random() < 0.3 else []
    for turn in range(rng.randint(1, 3)):
        items.append({"role": "user", "content": rng.choice([text(rng), [{"type": "input_text", "text": text(rng, 3)}]])})
        if rng.random() < 0.3:
            thought = [{"type": "reasoning_text", "text": text(rng, 3)}]
            items.append({"type": "reasoning", "id": f"r{turn}", "summary": [], "content": thought})
        if rng.random() < 0.7:
            said = [{"type": "output_text", "text": text(rng, 3), "annotations": []}]
            items.append({"type": "message", "id": f"m{turn}", "role": "assistant", "status": "completed", "content": said})
        if tools and rng.random() < 0.7:
            call = {"type": "function_call", "call_id": f"c{turn}", "name": "look_0", "arguments": json.dumps(arguments(rng))}
            items += [call, {"type": "function_call_output", "call_id": f"c{turn}", "output": text(rng, 3)}]
    items.append({"role": "user", "content": text(rng)})
    body = {"input": items}
    if rng.random() < 0.5:
        body["instructions"] = text(rng)
    if rng.random() < 0.2:
        body["reasoning"] = {"effort": rng.choice(EFFORTS)}
    if tools:
        body["tools"] = [{"type": "function", "parameters": {"type": "object"}, "strict": False} | one for one in tools]
    return "/v1/responses", body


def completions(rng, _style):
    several = [text(rng) for _ in range(rng.randint(1, 3))]
    numbers = [rng.randint(7, 600) for _ in range(rng.randint(1, 40))]
    return "/v1/completions", {"prompt": rng.choice([text(rng, 20), several, numbers, [numbers, numbers[:3]]])}


def conversations(seed, style, count):
    rng = random.Random(f"{seed} {style}")
    kinds = [chat] * 6 + [completions, messages, responses]
    for number in range(count):
        path, body = rng.choice(kinds)(rng, style)
        body["stream"] = number % 2 == 1
        body["max_output_tokens" if path == "/v1/responses" else "max_tokens"] = rng.choice([1, 16, 64])
        body["temperature"] = 1.0
        if body["stream"] and path.endswith("completions") and rng.random() < 0.7:
            body["stream_options"] = {"include_usage": True}
        yield path, body


def plain_tokens():
    """Tokens that no other token can be made of: a space and a word that is a token and has no longer neighbour."""
    vocabulary = json.loads((VECTORS / "tiny_tokenizer.json").read_text())["model"]["vocab"]
    return sorted(number for token, number in vocabulary.items() if token[0] == "Ġ" and token[1:].isascii() and token[1:].isalpha())


def post(url, body):
    """The status and body, read to the end."""
    head = {"content-type": "application/json", "x-workload-app": "compare", "anthropic-version": "2023-06-01"}
    request = urllib.request.Request(url, json.dumps(body).encode(), head)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def configuration(url, style, folder, port):
    settings = folder / "settings.json"
    settings.write_text(json.dumps(SPECIAL))
    files = {"file": str(VECTORS / "tiny_tokenizer.json"), "template": str(VECTORS / f"{style}.jinja"), "settings": str(settings)}
    document = {
        "listen": {"data": f"127.0.0.1:{port}", "admin": f"127.0.0.1:{port + 1}"},
        "access_log": str(folder / "access.log"),
        "backends": {"vllm": {"url": f"{url}/v1"}},
        "routes": [{"workload": "compare", "backend": "vllm"}],
        "tokenizers": {"*": files},
        "ledger": {"path": str(folder / "usage.db")},
    }
    path = folder / "tollgate.yaml"
    path.write_text(json.dumps(document))  # JSON is YAML
    return path


def make_model(style, folder):
    """A Llama of a few thousand parameters; its weights are vLLM's dummies."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    shape = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2}
    shape |= {"num_key_value_heads": 2, "head_dim": 32, "vocab_size": 768, "max_position_embeddings": 8192}
    marks = {"bos_token_id": 0, "eos_token_id": 1, "architectures": ["LlamaForCausalLM"], "model_type": "llama"}
    rest = {"rms_norm_eps": 1e-5, "tie_word_embeddings": False, "dtype": "float32", "hidden_act": "silu"}
    (folder / "config.json").write_text(json.dumps(shape | marks | rest))
    (folder / "tokenizer.json").write_bytes((VECTORS / "tiny_tokenizer.json").read_bytes())
    settings = SPECIAL | {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    (folder / "chat_template.jinja").write_text((VECTORS / f"{style}.jinja").read_text())


def run(style):
    url = os.environ["TOLLGATE_VLLM_URL"].rstrip("/")
    gate = os.environ.get("TOLLGATE_BIN", "tollgate")
    count, seed = int(os.environ.get("TOLLGATE_VLLM_COUNT", "240")), os.environ.get("TOLLGATE_VLLM_SEED", "7")
    port = int(os.environ.get("TOLLGATE_VLLM_PORT", "18431"))
    model = json.loads(urllib.request.urlopen(f"{url}/v1/models", timeout=10).read())["data"]
    names = [one["id"] for one in model]
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tollgate-vllm-"))
    print(f"style {style}, seed {seed}, {count} exchanges, models {names}, files in {folder}")
    path = configuration(url, style, folder, port)
    plain = plain_tokens()
    with open(folder / "gate.log", "w") as log:
        process = subprocess.Popen([gate, "run", "-c", str(path)], stdout=log, stderr=log)
    sent = []
    try:
        wait_for(f"http://127.0.0.1:{port + 1}/readyz")
        for number, (path, body) in enumerate(conversations(seed, style, count)):
            body["model"] = names[0]
            if len(names) > 1 and path.endswith("completions") and number % 4 < 2:
                body |= {"model": names[1], "allowed_token_ids": plain}
            status, answer = post(f"http://127.0.0.1:{port}{path}", body)
            sent.append((path, body, status, answer))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    return judge(gate, folder, sent)


def wait_for(url):
    for _ in range(100):
        try:
            if urllib.request.urlopen(url, timeout=1).status == 200:
                return
        except OSError:
            time.sleep(0.1)
    sys.exit(f"{url} does not answer")


def judge(gate, folder, sent):
    read = [gate, "usage"]
    ledger = ["--ledger", str(folder / "usage.db")]
    exported = subprocess.run([*read, "export", *ledger], check=True, capture_output=True, text=True).stdout
    # In the order of their start: a row that waits for its count is settled after the next one's.
    rows = sorted(csv.DictReader(io.StringIO(exported)), key=lambda row: int(row["started_unix_ms"]))
    print(subprocess.run([*read, "drift", *ledger], check=True, capture_output=True, text=True).stdout)
    if len(rows) != len(sent):
        sys.exit(f"{len(sent)} exchanges and {len(rows)} rows")
    tally, bad = collections.Counter(), 0
    for number, (row, (path, body, status, answer)) in enumerate(zip(rows, sent)):
        kind = f"{path}{' streamed' if body['stream'] else ''}"
        if status != 200:
            tally[f"{kind}: refused by vLLM with {status}"] += 1
            continue
        counts = [row[name] for name in ("prompt_reported", "prompt_counted", "completion_reported", "completion_counted")]
        prompt = "equal" if counts[0] == counts[1] != "" else "different"
        if body["stream"] and counts[0] == "" and counts[1] != "":
            prompt = "not reported"
        output = "equal" if counts[2] == counts[3] else "different"
        tally[f"{kind}: prompt {prompt}"] += 1
        tally[f"{body['model']}: output {output}"] += 1
        if prompt == "different":
            bad += 1
            (folder / f"different-{number}.json").write_text(json.dumps({"path": path, "body": body, "counts": counts, "answer": answer}, ensure_ascii=False, indent=1))
            print(f"#{number} {kind}: reported and counted, prompt then output: {counts}")
    for kind, times in sorted(tally.items()):
        print(f"{times:5} {kind}")
    return 1 if bad else 0


if __name__ == "__main__":
    if sys.argv[1] == "model":
        make_model(sys.argv[2], sys.argv[3])
    else:
        sys.exit(run(sys.argv[1]))
