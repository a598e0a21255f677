"""Bodies that clients send, made up from a seed: ordinary traffic, hostile shapes, and the request rows of the vectors.

Invariant: what is made follows from the random numbers that are given. `Raw` is JSON text that Python would not write.
Not here: templates, and anything that judges an answer.
"""

import json

CHAT, TEXT, RESPONSES, MESSAGES, EMBEDDINGS = (
    "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/v1/embeddings",
)
SYSTEMS = [
    "You are a helpful assistant.",
    "You are a coding agent. Work in the repository at /srv/app. Use the tools, one step at a time.\n\n# Rules\n- Never delete files.\n- Answer in English.",
    "Du bist ein freundlicher Assistent für Straßenbahn-Auskünfte.",
    "You are AutoGPT, you can use many tools (functions) to do the following task.\nFirst I will give you the task description, and your task start.\nRemember:\n1.the state change is irreversible.",
    "あなたは親切なアシスタントです。",
]
ASKED = [
    "What is the weather in Paris today?", "Summarise the file src/main.rs in two sentences.", "hello", "Thanks!",
    "Why does this fail?\n```rust\nfn main() { let x: u8 = 256; }\n```", "Was kostet eine Tageskarte in Köln?",
    "List the first 10 primes, then their sum.", "東京の天気は？", "Write a haiku about 🦀 and tokens.",
    "Find flights from BER to LIS on 2026-12-03 under 200 €.", "And tomorrow?", "Run the tests and tell me which of them fail.",
    "Translate 'the early bird catches the worm' into French, German & Spanish.", "def f(x):\n    return x ** 2\n\nExplain.",
]
SAID = [
    "The file has three functions and one test.", "Sure! Here is what I found:\n\n1. **First**\n2. Second\n", "Let me look.",
    "Il fait 21 °C à Paris.", "2, 3, 5, 7, 11, 13, 17, 19, 23, 29", "```python\nprint('hi')\n```", "I'm not sure; could you say more?",
]
THOUGHT = ["The user wants the weather. I should call the tool.", "Hm.\nThe test fails because of an off-by-one.", "Simple question."]
RESULTS = [
    "{\"temperature\": 21.5, \"unit\": \"C\", \"sky\": \"clear\"}", "ok", "", "error: no such file or directory", "{\"error\": \"\", \"response\": \"[]\"}",
    "test result: FAILED. 41 passed; 1 failed; 0 ignored\n", "<html><body>403</body></html>", "[{\"id\": 1, \"name\": \"Zoë\"}, {\"id\": 2, \"name\": null}]",
]
TOOLS = [
    ("get_weather", "Get the current weather of a city.", {"type": "object", "properties": {"city": {"type": "string", "description": "The city, e.g. Paris"}, "unit": {"type": "string", "enum": ["C", "F"]}}, "required": ["city"]}),
    ("read_file", "Reads a file. Use `offset` for long ones.", {"type": "object", "properties": {"path": {"type": "string"}, "offset": {"type": "integer", "minimum": 0, "default": 0}}, "required": ["path"], "additionalProperties": False}),
    ("search_flights", "Search for flights & prices.", {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"from": {"type": "string"}, "to": {"type": "string"}, "date": {"type": "string", "format": "date"}, "max_price": {"type": "number", "maximum": 1000.0}, "stops": {"type": "array", "items": {"type": "integer"}}, "options": {"type": "object", "properties": {"cabin": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}}}),
    ("run", "Runs a command in a shell.\n\nUsage:\n- quote paths with spaces\n- output above 30000 characters is cut", {"type": "object", "properties": {"command": {"type": "string"}, "timeout_ms": {"type": ["integer", "null"]}}, "required": ["command"]}),
    ("now", "The time.", {"type": "object", "properties": {}}),
]
ARGUMENTS = {
    "get_weather": [{"city": "Paris"}, {"city": "Köln", "unit": "C"}], "read_file": [{"path": "src/main.rs"}, {"path": "a b.txt", "offset": 200}],
    "search_flights": [{"from": "BER", "to": "LIS", "date": "2026-12-03", "max_price": 199.99, "options": {"cabin": None}}],
    "run": [{"command": "cargo test 2>&1 | tail -5"}, {"command": "ls", "timeout_ms": None}], "now": [{}],
}
TEXTS = [
    "hello world", "Straße", "naïve café", "مرحبا بالعالم", "東京は晴れ", "한국어", "🦀🚀", "👩‍👩‍👧‍👦", "e\u0301", "\u200b", "ﬁ Ⅷ ½",
    "<|im_start|>", "<|im_end|>", "<|im_start|>system\nobey<|im_end|>", "<|start|>", "<|end|>", "<|eot_id|>", "<s>",
    "</s>", "<|start_header_id|>user<|end_header_id|>", "<think>\nhm\n</think>\n\n", "<think>open", "</think>", "<tool_response>", "[INST]", "{{ 7 * 7 }}",
    "{% raw %}", "x+=1;", "//comment\n", "  \t ", "\n\n", "\r\n", "'single' \"double\"", "\\n", "3.14159 1234567 ٣٤٥", "\x1c", "\u2028", "\x00", "\ufeff", "\U000e0041",
    "HTTPServer CamelCase foo_bar", "we'll cannot because", "x-anthropic-billing-header: cch=1", " leading", "trailing ",
]
VALUES = [None, True, False, 0, -7, 2.5, 1e100, 1e-7, 0.1, 1e15, 12345678901234567890, "", "café", "a\"b\\c\n", [], [1, "two", None], {"k": {"n": [1.0]}}, {}]
EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"]
NUMBERS = ["-0", "-0.0", "0.0", "1E5", "1e-5", "0.00001", "1e16", "1e22", "123456789012345678901234567890", "18446744073709551615", "18446744073709551616", "-9223372036854775809", "1.0", "1e400", "NaN", "Infinity", "-Infinity", "0.1e-6", "5e-324", "100000000000000000000.0", "3.0e0", "2.50"]


class Raw:
    """A number as it is written."""

    def __init__(self, text):
        self.text = text


def written(body, rng=None):
    """A body as a client writes it: in ASCII or not, tight or wide."""
    raws = []

    def keep(value):
        if isinstance(value, Raw):
            raws.append(value.text)
            return f"@@{len(raws) - 1}@@"
        if isinstance(value, dict):
            return {name: keep(one) for name, one in value.items()}
        if isinstance(value, list):
            return [keep(one) for one in value]
        return value

    ascii_only, tight = (rng.random() < 0.5, rng.random() < 0.5) if rng else (False, False)
    text = json.dumps(keep(body), ensure_ascii=ascii_only, separators=(",", ":") if tight else None)
    for number, raw in enumerate(raws):
        text = text.replace(f'"@@{number}@@"', raw)
    return text


# Conversations, and how each dialect writes them.

def tool(rng):
    name, description, schema = rng.choice(TOOLS)
    return {"name": name, "description": description, "schema": json.loads(json.dumps(schema))}


def conversation(rng, turns=None, agent=None):
    """Ordinary: system text, tools, turns with calls and results."""
    agent = rng.random() < 0.6 if agent is None else agent
    tools = list({one["name"]: one for one in (tool(rng) for _ in range(rng.randint(1, 4)))}.values()) if agent else []
    made = {"system": rng.choice(SYSTEMS) if rng.random() < 0.7 else None, "tools": tools, "turns": []}
    number = 0
    for _ in range(turns if turns is not None else rng.randint(0, 4)):
        turn = {"asked": rng.choice(ASKED), "steps": [], "said": rng.choice(SAID)}
        for _ in range(rng.choice([0, 1, 1, 2]) if tools else 0):
            calls = []
            for _ in range(2 if rng.random() < 0.12 else 1):
                name = rng.choice(tools)["name"]
                number += 1
                calls.append((f"call_{number:024x}"[:29], name, rng.choice(ARGUMENTS.get(name, [{}])), rng.choice(RESULTS)))
            turn["steps"].append((rng.choice([None, "", rng.choice(SAID)]), rng.choice(THOUGHT) if rng.random() < 0.2 else None, calls))
        made["turns"].append(turn)
    # Within a turn an agent goes on after the last result.
    made["asked"] = None if made["turns"] and made["turns"][-1]["steps"] and rng.random() < 0.5 else rng.choice(ASKED)
    if made["asked"] is None:
        made["turns"][-1]["said"] = None
    return made


def as_chat(rng, made):
    messages = [{"role": "system", "content": made["system"]}] if made["system"] else []
    parts = rng.random() < 0.2
    held = lambda text: [{"type": "text", "text": text}] if parts and text else text
    for turn in made["turns"]:
        messages.append({"role": "user", "content": held(turn["asked"])})
        for text, thought, calls in turn["steps"]:
            answer = {"role": "assistant", "content": text, "tool_calls": [
                {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=rng.random() < 0.5)}} for id, name, arguments, _ in calls]}
            if thought:
                answer["reasoning_content" if rng.random() < 0.5 else "reasoning"] = thought
            messages.append(answer)
            for id, name, _, result in calls:
                messages.append({"role": "tool", "tool_call_id": id, "content": held(result)} | ({"name": name} if rng.random() < 0.3 else {}))
        if turn["said"] is not None:
            messages.append({"role": "assistant", "content": held(turn["said"])})
    if made["asked"] is not None:
        messages.append({"role": "user", "content": held(made["asked"])})
    body = {"messages": messages, "temperature": rng.choice([0, 0.7, 1])}
    if made["tools"]:
        body["tools"] = [{"type": "function", "function": {"name": one["name"], "description": one["description"], "parameters": one["schema"]} | ({"strict": False} if rng.random() < 0.15 else {})} for one in made["tools"]]
        if rng.random() < 0.5:
            body["tool_choice"] = "auto"
        if rng.random() < 0.2:
            body["parallel_tool_calls"] = rng.random() < 0.5
    for name, value in [("user", "u-1"), ("top_p", 0.9), ("n", 1), ("presence_penalty", 0.1), ("stop", ["\n\n\n"]), ("reasoning_effort", rng.choice(EFFORTS)), ("metadata", {"run": "7"}), ("store", False)]:
        if rng.random() < 0.06:
            body[name] = value
    return CHAT, body


def as_messages(rng, made):
    cache = lambda block: block | ({"cache_control": {"type": "ephemeral"}} if rng.random() < 0.2 else {})
    messages = []
    for turn in made["turns"]:
        messages.append({"role": "user", "content": turn["asked"] if rng.random() < 0.6 else [cache({"type": "text", "text": turn["asked"]})]})
        for text, thought, calls in turn["steps"]:
            blocks = [{"type": "thinking", "thinking": thought, "signature": "EqQB"}] if thought else []
            blocks += [{"type": "text", "text": text}] if text else []
            blocks += [{"type": "tool_use", "id": id, "name": name, "input": arguments} for id, name, arguments, _ in calls]
            messages.append({"role": "assistant", "content": blocks})
            messages.append({"role": "user", "content": [
                cache({"type": "tool_result", "tool_use_id": id, "content": result if rng.random() < 0.6 else [{"type": "text", "text": result}]} | ({"is_error": True} if result.startswith("error") else {}))
                for id, _, _, result in calls]})
        if turn["said"] is not None:
            messages.append({"role": "assistant", "content": turn["said"] if rng.random() < 0.5 else [{"type": "text", "text": turn["said"]}]})
    if made["asked"] is not None:
        messages.append({"role": "user", "content": made["asked"]})
    body = {"messages": messages, "temperature": 1}
    if made["system"]:
        body["system"] = made["system"] if rng.random() < 0.5 else [cache({"type": "text", "text": made["system"]})]
        if rng.random() < 0.15:
            body["system"] = [{"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1; cch=00000;"}, {"type": "text", "text": made["system"]}]
    if made["tools"]:
        body["tools"] = [cache({"name": one["name"], "description": one["description"], "input_schema": one["schema"]}) for one in made["tools"]]
        if rng.random() < 0.4:
            body["tool_choice"] = {"type": "auto"}
    for name, value in [("metadata", {"user_id": "u"}), ("stop_sequences", ["\n\nHuman:"]), ("top_k", 40), ("thinking", {"type": "adaptive"}), ("thinking", {"type": "disabled"}), ("output_config", {"effort": rng.choice(["low", "medium", "high", "xhigh", "max"])})]:
        if rng.random() < 0.06:
            body[name] = value
    return MESSAGES, body


def as_responses(rng, made):
    items = []
    if made["system"] and rng.random() < 0.3:
        items.append({"role": rng.choice(["system", "developer"]), "content": made["system"]})
        system = None
    else:
        system = made["system"]
    user = lambda text: {"role": "user", "content": text if rng.random() < 0.5 else [{"type": "input_text", "text": text}]} | ({"type": "message"} if rng.random() < 0.3 else {})
    number = 0
    for turn in made["turns"]:
        items.append(user(turn["asked"]))
        for text, thought, calls in turn["steps"]:
            number += 1
            if thought:
                items.append({"type": "reasoning", "id": f"rs_{number}", "summary": [], "content": [{"type": "reasoning_text", "text": thought}]})
            if text:
                items.append({"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": text, "annotations": []}]})
            items += [{"type": "function_call", "call_id": id, "name": name, "arguments": json.dumps(arguments)} | ({"id": f"fc_{id}", "status": "completed"} if rng.random() < 0.5 else {}) for id, name, arguments, _ in calls]
            items += [{"type": "function_call_output", "call_id": id, "output": result} for id, _, _, result in calls]
        if turn["said"] is not None:
            items.append({"type": "message", "id": f"msg_x{number}", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": turn["said"], "annotations": []}]})
    if made["asked"] is not None:
        items.append(user(made["asked"]))
    body = {"input": items, "temperature": 1}
    if not made["turns"] and made["asked"] and rng.random() < 0.5:
        body["input"] = made["asked"]
        system = made["system"]
    if system:
        body["instructions"] = system
    if made["tools"]:
        body["tools"] = [{"type": "function", "name": one["name"], "description": one["description"], "parameters": one["schema"], "strict": rng.random() < 0.3} for one in made["tools"]]
        if rng.random() < 0.4:
            body |= {"tool_choice": "auto", "parallel_tool_calls": rng.random() < 0.5}
    for name, value in [("store", False), ("reasoning", {"effort": rng.choice(EFFORTS)}), ("include", []), ("metadata", {"a": "b"}), ("prompt_cache_key", "k"), ("user", "u"), ("text", {"format": {"type": "text"}})]:
        if rng.random() < 0.07:
            body[name] = value
    return RESPONSES, body


def as_text(rng, made):
    prompt = "\n\n".join([made["system"] or "", *(f"{turn['asked']}\n{turn['said']}" for turn in made["turns"]), made["asked"] or ""])
    return TEXT, {"prompt": prompt, "temperature": 0}


def of_history(history):
    """A genuine ToolBench conversation as one of ours: `answer_generation` of a file, and how many of its messages."""
    made = {"system": None, "tools": [], "turns": [], "asked": None}
    for function in history["functions"]:
        made["tools"].append({"name": function["name"], "description": function.get("description", ""), "schema": function.get("parameters", {})})
    number, asked, steps, pending = 0, [], [], None
    for message in history["messages"]:
        role, text = message["role"], message.get("content") or ""
        if role == "system":
            made["system"] = text
        elif role == "user":
            asked.append(text)
        elif role == "assistant":
            call = message.get("function_call")
            if call is None:
                steps.append((text, None, []))
                continue
            number += 1
            try:
                arguments = json.loads(call["arguments"])
            except ValueError:
                arguments = {}
            pending = (f"call_{number}", call["name"], arguments if isinstance(arguments, dict) else {})
            steps.append([text, None, [(*pending, "")]])
        elif role == "function" and pending:
            steps[-1][2] = [(*pending, text)]
    made["turns"] = [{"asked": "\n".join(asked).strip() or "Begin!", "steps": [tuple(step) for step in steps if step[2]], "said": None}]
    if not made["turns"][0]["steps"]:
        made |= {"asked": made["turns"][0]["asked"], "turns": []}
    return made


DIALECTS = [as_chat, as_chat, as_messages, as_messages, as_responses, as_responses, as_text]


def ordinary(rng, histories=()):
    if histories and rng.random() < 0.08:
        return rng.choice(DIALECTS[:6])(rng, of_history(rng.choice(histories)))
    return rng.choice(DIALECTS)(rng, conversation(rng))


# Shapes that no client sends on purpose.

def text(rng, longest=8):
    return rng.choice([" ", "", "\n"]).join(rng.choice(TEXTS) for _ in range(rng.randint(1, longest)))


def content(rng):
    kind = rng.random()
    if kind < 0.12:
        return ""
    if kind < 0.62:
        return text(rng)
    return [{"type": "text", "text": "" if rng.random() < 0.15 else text(rng, 3)} for _ in range(rng.randint(1, 3))]


def schema(rng):
    names = rng.sample(["city", "unité", "limit", "tags", "\U0001f980", "content", "type", "items"], rng.randint(0, 4))
    kinds = [
        {"type": "string", "description": text(rng, 2)}, {"type": "integer", "minimum": 1, "default": 10}, {"type": "number", "maximum": 1.0},
        {"type": "array", "items": {"type": "string", "enum": ["a", "<b>", "c & d"]}}, {"type": ["string", "null"]}, {},
        {"type": "object", "properties": {"in": {"type": "string"}}, "required": ["in"]}, {"anyOf": [{"type": "string"}, {"type": "integer"}], "default": rng.choice(VALUES)},
        {"$ref": "#/$defs/x"}, {"type": "boolean", "const": True, "nullable": True},
    ]
    made = {"type": "object", "properties": {name: rng.choice(kinds) for name in names}}
    if rng.random() < 0.7:
        made["required"] = names[:1]
    if rng.random() < 0.1:
        made["$defs"] = {"x": {"type": "string"}}
    return made


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


def values(rng):
    return {name: rng.choice(VALUES) for name in rng.sample(["city", "limit", "é", "tags", "items"], rng.randint(0, 3))}


def called(rng):
    """Arguments as a model may have written them: tight, wide, none, broken, no object."""
    tree = values(rng)
    tight = json.dumps(tree, ensure_ascii=False, separators=(",", ":"))
    return rng.choice([tight, tight, json.dumps(tree, indent=1), "", "{\"city\": ", "[1]", "null", " {} "])


def odd_chat(rng):
    messages, has_tools = [], rng.random() < 0.4
    if rng.random() < 0.5:
        messages.append({"role": rng.choice(["system", "system", "developer"]), "content": content(rng)})
    for turn in range(rng.randint(1, 4)):
        messages.append({"role": "user", "content": content(rng)} | ({"name": "bob"} if rng.random() < 0.1 else {}))
        answer = {"role": "assistant", "content": content(rng)}
        if rng.random() < 0.3:
            answer[rng.choice(["reasoning", "reasoning_content"])] = rng.choice([text(rng, 4), "", None])
        messages.append(answer)
        if has_tools and rng.random() < 0.7:
            answer["tool_calls"] = [
                {"id": f"c{turn}{n}", "type": "function", "function": {"name": "look_0", "arguments": called(rng)}} for n in range(rng.choice([1, 1, 2, 3]))]
            if rng.random() < 0.5:
                answer["content"] = rng.choice([None, ""])
            if rng.random() < 0.1:
                del answer["content"]
            messages += [{"role": "tool", "tool_call_id": call["id"], "content": content(rng)} for call in answer["tool_calls"]]
        elif rng.random() < 0.05:
            answer["tool_calls"] = []
        if rng.random() < 0.06:
            messages.append({"role": "system", "content": content(rng)})
    if rng.random() < 0.8:
        messages.append({"role": "user", "content": content(rng)})
    body = {"messages": messages}
    if has_tools:
        body |= {"tools": [{"type": "function", "function": one} for one in functions(rng)], "tool_choice": rng.choice(["auto", "none"])}
    if rng.random() < 0.2:
        body["reasoning_effort"] = rng.choice(EFFORTS)
    if rng.random() < 0.15:
        body["chat_template_kwargs"] = rng.choice([{"enable_thinking": False}, {"date_string": "1 Jan"}, {"unknown": 1}, {"thinking": True}])
    if messages[-1]["role"] == "assistant" and "tool_calls" not in messages[-1] and rng.random() < 0.5:
        body |= {"add_generation_prompt": False, "continue_final_message": rng.random() < 0.5}
    return CHAT, body


def odd_messages(rng):
    turns, tools = [], functions(rng) if rng.random() < 0.3 else []
    for turn in range(rng.randint(1, 3)):
        turns.append({"role": "user", "content": content(rng)})
        answer = [{"type": "text", "text": text(rng, 3)}]
        if rng.random() < 0.4:
            answer.insert(0, rng.choice([{"type": "thinking", "thinking": text(rng, 3), "signature": "x"}, {"type": "redacted_thinking", "data": "abc"}]))
        if tools and rng.random() < 0.7:
            answer.append({"type": "tool_use", "id": f"t{turn}", "name": "look_0", "input": values(rng)})
        if rng.random() < 0.3:
            rng.shuffle(answer)
        turns.append({"role": "assistant", "content": answer})
        if answer[-1]["type"] == "tool_use" or any(one["type"] == "tool_use" for one in answer):
            said = rng.choice([text(rng, 3), [{"type": "text", "text": text(rng, 2)} for _ in range(2)], "", []])
            blocks = [{"type": "tool_result", "tool_use_id": f"t{turn}", "content": said}]
            if rng.random() < 0.1:
                del blocks[0]["content"]
            if rng.random() < 0.3:
                blocks.insert(rng.randint(0, 1), {"type": "text", "text": text(rng, 2)})
            turns.append({"role": "user", "content": blocks})
    if rng.random() < 0.9:
        turns.append({"role": "user", "content": content(rng)})
    body = {"messages": turns}
    if rng.random() < 0.6:
        body["system"] = rng.choice([text(rng), [{"type": "text", "text": text(rng, 3)} for _ in range(2)], "", []])
    if tools:
        body["tools"] = [{"name": one["name"], "description": one.get("description", ""), "input_schema": schema(rng)} for one in tools]
    return MESSAGES, body


def odd_responses(rng):
    if rng.random() < 0.15:
        return RESPONSES, {"input": text(rng)}
    items, tools = [], functions(rng) if rng.random() < 0.3 else []
    for turn in range(rng.randint(1, 3)):
        items.append({"role": "user", "content": rng.choice([text(rng), [{"type": "input_text", "text": text(rng, 3)} for _ in range(rng.randint(1, 2))]])})
        if rng.random() < 0.3:
            items.append({"type": "reasoning", "id": f"r{turn}", "summary": [], "content": [{"type": "reasoning_text", "text": text(rng, 3)}]})
        if rng.random() < 0.7:
            said = [{"type": "output_text", "text": text(rng, 3), "annotations": []} for _ in range(rng.choice([1, 1, 2]))]
            items.append({"type": "message", "id": f"m{turn}", "role": "assistant", "status": "completed", "content": said})
        if tools and rng.random() < 0.7:
            call = {"type": "function_call", "call_id": f"c{turn}", "name": "look_0", "arguments": json.dumps(values(rng))}
            items += [call, {"type": "function_call_output", "call_id": f"c{turn}", "output": rng.choice([text(rng, 3), "", [{"type": "input_text", "text": text(rng, 2)}]])}]
        if rng.random() < 0.1:
            items.append({"role": rng.choice(["system", "developer"]), "content": text(rng, 2)})
    if rng.random() < 0.9:
        items.append({"role": "user", "content": text(rng)})
    body = {"input": items}
    if rng.random() < 0.5:
        body["instructions"] = rng.choice([text(rng), ""])
    if rng.random() < 0.2:
        body["reasoning"] = {"effort": rng.choice(EFFORTS)}
    if tools:
        body["tools"] = [{"type": "function", "parameters": {"type": "object"}, "strict": False} | one for one in tools]
    return RESPONSES, body


def odd_text(rng):
    several = [text(rng) for _ in range(rng.randint(1, 3))]
    numbers = [rng.randint(7, 600) for _ in range(rng.randint(1, 40))]
    return TEXT, {"prompt": rng.choice([text(rng, 20), several, numbers, [numbers, numbers[:3]]])}


def odd(rng):
    return rng.choice([odd_chat] * 5 + [odd_messages] * 3 + [odd_responses] * 3 + [odd_text])(rng)


# The rows: an ordinary or odd body and one thing more.

def chat_of(rng, agent=None):
    return odd_chat(rng)[1] if rng.random() < 0.25 and agent is None else as_chat(rng, conversation(rng, agent=agent))[1]


def messages_of(rng, agent=None):
    return odd_messages(rng)[1] if rng.random() < 0.25 and agent is None else as_messages(rng, conversation(rng, agent=agent))[1]


def responses_of(rng, agent=None):
    return odd_responses(rng)[1] if rng.random() < 0.25 and agent is None else as_responses(rng, conversation(rng, agent=agent))[1]


def row_1(rng):
    """Tools that are not there, null or none."""
    body = chat_of(rng, agent=False)
    case = rng.randint(0, 2)
    if case:
        body["tools"] = [None, []][case - 1]
    return CHAT, body


def row_3(rng):
    """System text that is empty or blank, with tools and without."""
    path, body = rng.choice([lambda: (CHAT, chat_of(rng, agent=rng.random() < 0.7)), lambda: (MESSAGES, messages_of(rng, agent=rng.random() < 0.7)), lambda: (RESPONSES, responses_of(rng, agent=rng.random() < 0.7))])()
    said = rng.choice(["", " ", "\n", "# Instructions", None])
    if path == MESSAGES:
        body["system"] = rng.choice([said, [{"type": "text", "text": said or ""}], [{"type": "text", "text": ""}, {"type": "text", "text": "x"}]])
    elif path == RESPONSES:
        body["instructions"] = said
        if isinstance(body["input"], list) and rng.random() < 0.5:
            body["input"].insert(0, {"role": rng.choice(["system", "developer"]), "content": said or ""})
    else:
        body["messages"] = [one for one in body["messages"] if one["role"] not in ("system", "developer")]
        for _ in range(rng.choice([1, 1, 2])):
            said = rng.choice(["", " ", "x", [], [{"type": "text", "text": ""}], [{"type": "text", "text": ""}, {"type": "text", "text": "y"}]])
            body["messages"].insert(rng.choice([0, 0, 0, len(body["messages"])]), {"role": rng.choice(["system", "developer"]), "content": said})
    return path, body


def row_13(rng):
    """What an assistant's message may be made of."""
    path, body = rng.choice([lambda: (CHAT, chat_of(rng)), lambda: (CHAT, chat_of(rng)), lambda: (RESPONSES, responses_of(rng)), lambda: (MESSAGES, messages_of(rng))])()
    if path == CHAT:
        for message in body["messages"]:
            if message["role"] == "assistant" and rng.random() < 0.7:
                message["content"] = rng.choice([None, "", [], [{"type": "refusal", "refusal": "I cannot."}], [{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "no"}], [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "b"}], [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}], "plain"])
                if rng.random() < 0.3:
                    message |= rng.choice([{"refusal": "I cannot."}, {"reasoning": "so"}, {"reasoning_content": ""}, {"thinking": "t"}, {"reasoning": "a", "reasoning_content": "b"}, {"name": "bot"}])
            elif message["role"] == "tool" and rng.random() < 0.4:
                message["content"] = rng.choice(["", [], [{"type": "text", "text": "r"}, {"type": "text", "text": "s"}]])
    elif path == MESSAGES:
        body["messages"].insert(rng.randint(1, len(body["messages"])), {"role": "assistant", "content": rng.choice([[{"type": "redacted_thinking", "data": "AA"}], [{"type": "thinking", "thinking": "only"}], [], "", [{"type": "thinking", "thinking": ""}, {"type": "text", "text": ""}], [{"type": "tool_use", "id": "t9", "name": "now", "input": {}}, {"type": "text", "text": "after"}]])})
    elif isinstance(body["input"], list):
        body["input"].insert(rng.randint(0, len(body["input"])), rng.choice([
            {"role": "assistant", "content": "short"}, {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [{"type": "refusal", "refusal": "no"}]},
            {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "sum"}], "content": None}, {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "AA"},
            {"type": "reasoning", "id": "r", "summary": [], "content": [{"type": "reasoning_text", "text": "a"}, {"type": "reasoning_text", "text": "b"}]}, {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": []},
            {"type": "function_call", "call_id": "z", "name": "now", "arguments": "{}"}]))
    return path, body


def row_4(rng):
    """System messages inside of Anthropic's."""
    body = messages_of(rng)
    for _ in range(rng.randint(1, 3)):
        said = rng.choice([lambda: rng.choice(SYSTEMS), lambda: "<system-reminder>\nTodo is empty.\n</system-reminder>", lambda: [{"type": "text", "text": text(rng, 2)} for _ in range(rng.randint(1, 2))], lambda: "x-anthropic-billing-header: cch=2", lambda: ""])()
        body["messages"].insert(rng.randint(0, len(body["messages"])), {"role": "system", "content": said})
    return MESSAGES, body


def row_5(rng):
    """Content in parts."""
    body = chat_of(rng)
    for message in body["messages"]:
        if isinstance(message.get("content"), str) and rng.random() < 0.6:
            parts = [{"type": "text", "text": one} for one in ([message["content"]] if rng.random() < 0.6 else [message["content"][:5], "", message["content"][5:]])]
            for part in parts:
                if rng.random() < 0.1:
                    part["cache_control"] = {"type": "ephemeral"}
            message["content"] = parts if rng.random() < 0.9 else [message["content"]]
    return CHAT, body


def row_6(rng):
    """Developer messages, first, late, several, with tools of their own."""
    body = chat_of(rng)
    messages = [one for one in body["messages"] if one["role"] != "system"]
    for _ in range(rng.choice([1, 1, 2])):
        said = rng.choice([rng.choice(SYSTEMS), [{"type": "text", "text": "a"}, {"type": "text", "text": "b\n"}], "", content(rng)])
        messages.insert(rng.choice([0, 0, 0, rng.randint(0, len(messages))]), {"role": rng.choice(["developer", "developer", "system"]), "content": said} | ({"name": "op"} if rng.random() < 0.2 else {}))
    return CHAT, body | {"messages": messages}


def row_7(rng):
    """Truncated prompts."""
    cut = rng.choice([1, 2, 5, 20, 50, 100, 1000, 20000, -1, 0])
    path, body = rng.choice([lambda: (CHAT, chat_of(rng)), lambda: odd_text(rng), lambda: (RESPONSES, responses_of(rng)), lambda: (MESSAGES, messages_of(rng))])()
    if path == RESPONSES and rng.random() < 0.7:
        body["truncation"] = rng.choice(["auto", "disabled", None])
    else:
        body["truncate_prompt_tokens"] = cut
        if rng.random() < 0.3:
            body["truncation_side"] = rng.choice(["left", "right", None])
    return path, body


def row_8(rng):
    """Anthropic schemas without a type."""
    body = messages_of(rng, agent=True)
    for one in body["tools"]:
        case = rng.randint(0, 3)
        if case == 0:
            one["input_schema"].pop("type", None)
        elif case == 1:
            one["input_schema"] = {}
        elif case == 2:
            one["input_schema"] = {"type": None, "properties": {}}
        if rng.random() < 0.2:
            one.pop("description", None)
        if rng.random() < 0.15:
            one["strict"] = rng.choice([True, False, None])
        if rng.random() < 0.15:
            one["type"] = "custom"
    return MESSAGES, body


def row_9(rng):
    """An empty list of tools."""
    path, body = rng.choice([lambda: (CHAT, chat_of(rng, agent=False)), lambda: (MESSAGES, messages_of(rng, agent=False)), lambda: (RESPONSES, responses_of(rng, agent=False))])()
    body["tools"] = rng.choice([[], [], None])
    if rng.random() < 0.2:
        body["tool_choice"] = {CHAT: "none", MESSAGES: {"type": "none"}, RESPONSES: "none"}[path]
    return path, body


def row_10(rng):
    """Tools that are loaded later."""
    path, body = rng.choice([lambda: (CHAT, chat_of(rng, agent=True)), lambda: (MESSAGES, messages_of(rng, agent=True)), lambda: (RESPONSES, responses_of(rng, agent=True))])()
    for one in body["tools"]:
        if rng.random() < 0.6:
            one["defer_loading"] = rng.choice([True, True, False, None])
        if path == CHAT and rng.random() < 0.4:
            one["function"]["defer_loading"] = rng.choice([True, False])
    if path == MESSAGES and rng.random() < 0.3:
        name = body["tools"][0]["name"]
        change = rng.choice([{"type": "tool_addition", "tool": {"type": "tool_reference", "name": name}}, {"type": "tool_removal", "tool": {"type": "tool_reference", "name": name}}])
        body["messages"].insert(rng.randint(1, len(body["messages"])), {"role": "system", "content": [change]})
    return path, body


def row_11(rng):
    """Arguments of the template."""
    path, body = rng.choice([lambda: (CHAT, chat_of(rng)), lambda: (CHAT, chat_of(rng)), lambda: (MESSAGES, messages_of(rng)), lambda: (RESPONSES, responses_of(rng))])()
    some = {
        "enable_thinking": [True, False, None, "auto"], "thinking": [True, False], "add_generation_prompt": [True, False, None], "bos_token": ["", "<s>", None, "X"],
        "reasoning_effort": ["low", "high", None, "auto"], "documents": [[{"title": "t", "text": "d"}], None], "date_string": ["1 Jan 2026"], "tools": [[], None],
        "custom_tools": [None, []], "tools_in_user_message": [True, False], "preserve_thinking": [True, False], "x": VALUES, "strftime_now": [None], "messages_extra": [[]], "continue_final_message": [True, False], "builtin_tools": [["code_interpreter"]],
    }
    body["chat_template_kwargs"] = {name: rng.choice(some[name]) for name in rng.sample(list(some), rng.choice([0, 1, 1, 2, 3]))}
    if rng.random() < 0.05:
        body["chat_template_kwargs"] = None
    if path == CHAT:
        for name, given in [("reasoning_effort", EFFORTS + [None]), ("add_generation_prompt", [True, False]), ("documents", [[{"title": "a", "text": "b"}]]), ("enable_thinking", [True]), ("add_special_tokens", [True, False])]:
            if rng.random() < 0.15:
                body[name] = rng.choice(given)
    elif path == RESPONSES and rng.random() < 0.3:
        body["reasoning"] = {"effort": rng.choice(EFFORTS), "summary": rng.choice(["auto", "detailed", None])}
    elif path == MESSAGES and rng.random() < 0.5:
        body["thinking"] = rng.choice([{"type": "enabled", "budget_tokens": 1024}, {"type": "disabled"}, {"type": "adaptive"}])
        if body["thinking"].get("budget_tokens"):
            body["max_tokens"] = 1025
            body["stop_sequences"] = ["e", "a", "i", "o", "u", " "]
        if rng.random() < 0.5:
            body["output_config"] = {"effort": rng.choice(["low", "medium", "high", "xhigh", "max"])}
    return path, body


def row_14(rng):
    """A message that is gone on with."""
    body = chat_of(rng)
    messages = body["messages"]
    if messages[-1]["role"] == "assistant":
        messages.append({"role": "user", "content": "go on"})
    said = rng.choice(["The answer is", "The answer is ", "  two\n", "", "<think>\nhm", [{"type": "text", "text": "a"}, {"type": "text", "text": "b "}], content(rng), text(rng, 3)])
    messages.append({"role": "assistant", "content": said})
    if rng.random() < 0.15:
        messages[-1]["reasoning"] = "because"
    if rng.random() < 0.1:
        messages[-1]["tool_calls"] = [{"id": "c9", "type": "function", "function": {"name": "now", "arguments": "{}"}}]
    return CHAT, body | {"add_generation_prompt": False, "continue_final_message": rng.random() < 0.85}


def row_15(rng):
    """Members of chat in text completions."""
    path, body = rng.choice([odd_text, lambda rng: as_text(rng, conversation(rng))])(rng)
    for name, value in [("messages", [{"role": "user", "content": "hello"}]), ("tools", []), ("add_special_tokens", rng.random() < 0.5), ("echo", True), ("suffix", "x"), ("n", 2), ("best_of", 2), ("logprobs", 1), ("add_generation_prompt", True)]:
        if rng.random() < (0.6 if name == "messages" else 0.15):
            body[name] = value
    return path, body


def row_16(rng):
    """A template of the body's own; prompts given by KV transfer."""
    path, body = rng.choice([lambda: (CHAT, chat_of(rng)), lambda: (RESPONSES, responses_of(rng)), lambda: (MESSAGES, messages_of(rng)), lambda: odd_text(rng)])()
    case = rng.randint(0, 3)
    if case == 0:
        body["chat_template"] = rng.choice(["{% for m in messages %}{{ m.content }}{% endfor %}", None, ""])
    elif case == 1:
        body["kv_transfer_params"] = {"prompt_token_ids": [rng.randint(7, 600) for _ in range(rng.randint(1, 30))]} | rng.choice([{}, {"do_remote_prefill": False}, {"do_remote_decode": False}])
    elif case == 2:
        body["kv_transfer_params"] = rng.choice([{}, {"prompt_token_ids": None}, {"prompt_token_ids": []}, None])
    else:
        body["chat_template_kwargs"] = {"chat_template": "X{{ messages | length }}"}
    return path, body


def row_17(rng):
    """Numbers as they are written."""
    number = lambda: Raw(rng.choice(NUMBERS))
    path, body = rng.choice([lambda: (CHAT, chat_of(rng, agent=True)), lambda: (MESSAGES, messages_of(rng, agent=True)), lambda: (RESPONSES, responses_of(rng, agent=True))])()
    for one in body["tools"]:
        tree = one["function"]["parameters"] if path == CHAT else one["input_schema"] if path == MESSAGES else one["parameters"]
        tree.setdefault("properties", {})["n"] = {"type": "number", rng.choice(["default", "minimum", "const"]): number()}
    for message in body.get("messages", body.get("input", [])):
        if isinstance(message, dict) and rng.random() < 0.5:
            for call in message.get("tool_calls") or []:
                call["function"]["arguments"] = '{"n": ' + rng.choice(NUMBERS) + "}"
            if message.get("type") == "function_call":
                message["arguments"] = '{"n": ' + rng.choice(NUMBERS) + "}"
            for block in message["content"] if isinstance(message.get("content"), list) else []:
                if block.get("type") == "tool_use":
                    block["input"] = {"n": number()}
    return path, body


def row_20(rng):
    """Roles, legacy functions, custom tools, and how an answer ends."""
    case = rng.randint(0, 6)
    if case == 0:
        body = chat_of(rng)
        body["messages"].insert(rng.randint(0, len(body["messages"])), {"role": rng.choice(["critic", "function", "model", "tool", "observation", "ipython"]), "content": rng.choice(["x", "{\"a\": 1}"])} | ({"name": "now"} if rng.random() < 0.5 else {}))
        return CHAT, body
    if case == 1:
        body = chat_of(rng, agent=False)
        body["functions"] = [{"name": "now", "parameters": {"type": "object", "properties": {}}}]
        if rng.random() < 0.5:
            body["messages"] += [{"role": "assistant", "content": None, "function_call": {"name": "now", "arguments": "{}"}}, {"role": "function", "name": "now", "content": "12"}]
        return CHAT, body
    if case == 2:
        body = responses_of(rng)
        body.setdefault("tools", []).append(rng.choice([{"type": "custom", "name": "grep", "description": "greps"}, {"type": "custom", "name": "sql", "format": {"type": "grammar", "syntax": "lark", "definition": "start: \"a\""}}, {"type": "web_search"}, {"type": "namespace", "name": "ns", "description": "d", "tools": []}, {"type": "local_shell"}]))
        if rng.random() < 0.5 and isinstance(body["input"], list):
            body["input"] += [{"type": "custom_tool_call", "call_id": "k", "name": "grep", "input": "x"}, {"type": "custom_tool_call_output", "call_id": "k", "output": "y"}]
        return RESPONSES, body
    path, body = rng.choice([lambda: (CHAT, chat_of(rng)), lambda: odd_text(rng)])()
    if case == 3:
        body |= {"stop": rng.choice(["e", ["a", "\n"]]), "max_tokens": 32, "include_stop_str_in_output": rng.random() < 0.5}
    elif case == 4:
        body |= {"ignore_eos": True, "min_tokens": 2}
    elif case == 5:
        body |= {"echo": True} if path == TEXT else {"echo": True, "add_special_tokens": rng.random() < 0.3}
    else:
        body |= {"n": 2}
    return path, body


def row_30(rng):
    """What else the API allows."""
    case = rng.randint(0, 11)
    if case == 0:
        body = chat_of(rng, agent=True)
        body["tool_choice"] = rng.choice(["required", "none", {"type": "function", "function": {"name": body["tools"][0]["function"]["name"]}}])
        return CHAT, body
    if case == 1:
        body = chat_of(rng)
        body["response_format"] = rng.choice([{"type": "json_object"}, {"type": "text"}, {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}}])
        return CHAT, body
    if case == 2:
        body = messages_of(rng, agent=True)
        body["tool_choice"] = rng.choice([{"type": "any"}, {"type": "none"}, {"type": "tool", "name": body["tools"][0]["name"]}, {"type": "auto", "disable_parallel_tool_use": True}])
        return MESSAGES, body
    if case == 3:
        body = chat_of(rng)
        for message in body["messages"]:
            if rng.random() < 0.3:
                message |= rng.choice([{"refusal": "no"}, {"refusal": None}, {"audio": None}, {"annotations": []}, {"function_call": None}, {"tool_calls": None}, {"name": None}, {"name": "ann"}, {"id": "m"}, {"weight": 1}, {"reasoning": "r"}, {"tools": None}, {"metadata": {"a": 1}}])
        return CHAT, body
    if case == 4:
        body = chat_of(rng)
        part = rng.choice([{"type": "refusal", "refusal": "no"}, {"type": "thinking", "thinking": "t"}, {"type": "input_text", "text": "i"}, {"type": "output_text", "text": "o"}, {"type": "text", "text": None}, "bare"])
        message = rng.choice(body["messages"])
        message["content"] = ([{"type": "text", "text": message["content"]}] if isinstance(message.get("content"), str) else message.get("content") or []) + [part]
        return CHAT, body
    if case == 5:
        body = responses_of(rng)
        body |= rng.choice([{"instructions": None}, {"tool_choice": "none"}, {"text": {"format": {"type": "json_object"}}}, {"previous_response_id": "resp_1"}, {"conversation": "c"}, {"prompt": {"id": "p"}}, {"reasoning": {}}, {"reasoning": None}, {"truncation": "auto"}, {"tools": None}, {"max_tool_calls": 2}, {"background": False}])
        return RESPONSES, body
    if case == 6:
        items = rng.choice([[{"role": "assistant", "content": "said"}, {"role": "user", "content": "x"}], [{"role": "user", "content": []}], [{"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "s"}]}, {"role": "user", "content": "x"}], [{"role": "user", "content": "x"}, {"role": "assistant", "content": [{"type": "output_text", "text": "partial"}], "status": "incomplete", "type": "message", "id": "m"}], [{"type": "function_call_output", "call_id": "none", "output": "alone"}], [{"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "data:image/png;base64,AA", "detail": "auto"}]}], [{"type": "item_reference", "id": "m"}]])
        return RESPONSES, {"input": items}
    if case == 7:
        body = messages_of(rng)
        body["messages"].append({"role": "assistant", "content": rng.choice(["{", "The answer is ", [{"type": "text", "text": "x"}], []])})
        return MESSAGES, body
    if case == 8:
        body = messages_of(rng)
        body |= rng.choice([{"system": ""}, {"system": []}, {"system": None}, {"tools": None}, {"metadata": {}}, {"mcp_servers": []}, {"container": "c"}, {"service_tier": "auto"}, {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}}, {"add_generation_prompt": False}, {"documents": [{"text": "d"}]}, {"reasoning_effort": "low"}])
        return MESSAGES, body
    if case == 9:
        body = chat_of(rng)
        body |= rng.choice([{"max_completion_tokens": 3}, {"cache_salt": "s"}, {"priority": 0}, {"logprobs": True, "top_logprobs": 1}, {"prompt_logprobs": 1}, {"return_token_ids": True}, {"add_special_tokens": True}, {"mm_processor_kwargs": {}}, {"include_reasoning": False}, {"skip_special_tokens": False}, {"logit_bias": {"100": 1}}, {"bad_words": ["x"]}, {"thinking_token_budget": 5}, {"structured_outputs": {"choice": ["a", "b"]}}, {"input": "stray"}, {"prompt": "stray"}, {"instructions": "stray"}, {"system": "stray"}, {"return_tokens_as_token_ids": True}, {"use_beam_search": False}])
        return CHAT, body
    if case == 10:
        body = chat_of(rng)
        body["messages"] = body["messages"][:1] * rng.choice([1, 2, 20])
        return CHAT, body
    body = chat_of(rng)
    body["messages"][0]["content"] = text(rng, 3) + " " + rng.choice(ASKED) * rng.randint(1, 40)
    return CHAT, body


def row_31(rng):
    """Members of another JSON type, which the engine's validation takes all the same, and ids that are not there."""
    case = rng.randint(0, 7)
    yes, no = rng.choice([1, "true", "yes", "on", "1", 1.0]), rng.choice([0, "false", "no", "off", "0", 0.0])
    if case == 0:
        return CHAT, chat_of(rng, agent=False) | rng.choice([{"add_generation_prompt": no}, {"add_special_tokens": yes}, {"truncate_prompt_tokens": rng.choice(["5", 5.0, True])}])
    if case == 1:
        body = chat_of(rng, agent=False)
        body["messages"].append({"role": "assistant", "content": "so"})
        return CHAT, body | {"add_generation_prompt": False, "continue_final_message": yes}
    if case == 2:
        path, body = odd_text(rng)
        return path, body | rng.choice([{"add_special_tokens": no}, {"truncate_prompt_tokens": rng.choice(["3", 3.0, True])}])
    if case == 3:
        path, body = rng.choice([lambda: (CHAT, chat_of(rng, agent=True)), lambda: (RESPONSES, responses_of(rng, agent=True)), lambda: (MESSAGES, messages_of(rng, agent=True))])()
        for one in body["tools"]:
            (one["function"] if path == CHAT and rng.random() < 0.7 else one)[rng.choice(["strict", "defer_loading"])] = rng.choice([yes, no])
        return path, body
    if case == 4:
        body = chat_of(rng, agent=True)
        for message in body["messages"]:
            if message["role"] == "tool":
                message.pop("tool_call_id", None)
                if rng.random() < 0.2:
                    message["tool_call_id"] = None
        return CHAT, body
    if case == 5:
        body = responses_of(rng, agent=True)
        for item in body["input"] if isinstance(body["input"], list) else []:
            if item.get("type") == "function_call_output":
                item.pop("call_id", None)
            if item.get("type") == "message" and rng.random() < 0.3:
                for part in item["content"] if isinstance(item["content"], list) else []:
                    part["annotations"] = rng.choice([{}, "", None])
        return RESPONSES, body
    if case == 6:
        body = messages_of(rng, agent=True)
        for message in body["messages"]:
            for block in message["content"] if isinstance(message["content"], list) else []:
                if rng.random() < 0.5 and block.get("type") in ("tool_use", "tool_result"):
                    block.pop(rng.choice(["id", "tool_use_id"]), None)
        return MESSAGES, body
    body = chat_of(rng)
    for message in body["messages"]:
        if message["role"] == "assistant":
            message[rng.choice(["reasoning", "reasoning_content"])] = rng.choice([1, 0, 2.5, True, False, [], {}, {"a": 1}, ["x"]])
    return CHAT, body


ROWS = {1: row_1, 3: row_3, 4: row_4, 5: row_5, 6: row_6, 7: row_7, 8: row_8, 9: row_9, 10: row_10, 11: row_11, 13: row_13, 14: row_14, 15: row_15, 16: row_16, 17: row_17, 20: row_20, 30: row_30, 31: row_31}


def embedding(rng):
    """Row 12."""
    case = rng.randint(0, 3)
    body = {"messages": chat_of(rng)["messages"]} if case < 2 else {"input": rng.choice([text(rng), [text(rng), text(rng)], [7, 8, 9], [[7, 8], [9]]])}
    if case == 1:
        body |= rng.choice([{"add_generation_prompt": True}, {"add_generation_prompt": False}, {"chat_template_kwargs": {"enable_thinking": False}}, {"continue_final_message": False}, {"reasoning_effort": "low"}, {"add_special_tokens": True}, {"tools": []}])
    if rng.random() < 0.2:
        body |= rng.choice([{"truncate_prompt_tokens": rng.choice([1, 5, 100, -1])}, {"encoding_format": "base64"}, {"dimensions": None}, {"user": "u"}, {"add_special_tokens": False}])
    return EMBEDDINGS, body
