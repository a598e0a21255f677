//! Renders made-up conversations with chat templates, a JSON line each, for another renderer to be held against.
//!
//! `cargo run --release -p tokens --example renderings -- SEED CASES TEMPLATES > lines` where TEMPLATES is a folder of
//! `*.jinja`; `cargo xtask renderings` does all of it. A line has the template's name, the dialect, the body, what the
//! template was given, its text or the reason that there is none, and whether the count is exact.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use tokens::{Certainty, Counter, TemplateSettings};
use wire::dialect::Operation;

/// 2025-06-28, noon.
const CLOCK_S: i64 = 1_751_112_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [seed, cases, folder] = words.as_slice() else {
        return Err("usage: renderings SEED CASES TEMPLATES".into());
    };
    let (seed, cases): (u64, usize) = (seed.parse()?, cases.parse()?);
    eprintln!("seed {seed}");
    let models = models(Path::new(folder))?;
    let mut made = Made(seed.wrapping_mul(2) + 1);
    let mut out = BufWriter::new(std::io::stdout().lock());
    for _ in 0..cases {
        let (name, counter) = &models[made.below(models.len())];
        let (dialect, operation, body) = made.call();
        let text = body.to_string();
        let mut line = json!({"template": name, "dialect": dialect, "body": body});
        match counter.shown(operation, text.as_bytes(), CLOCK_S) {
            Ok(Some(shown)) => {
                let prompt = counter.prompt(operation, text.as_bytes(), CLOCK_S);
                // As text: its members have an order.
                line["arguments"] = shown.arguments.into();
                match shown.text {
                    Ok(text) => line["text"] = text.into(),
                    Err(why) => line["refused"] = why.to_string().into(),
                }
                line["exact"] = prompt
                    .is_ok_and(|prompt| prompt.count.certainty == Certainty::Exact)
                    .into();
            }
            Ok(None) => {}
            Err(why) => line["refused"] = why.to_string().into(),
        }
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn models(folder: &Path) -> Result<Vec<(String, Counter)>, Box<dyn std::error::Error>> {
    let tokenizer =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/tokens/tiny_tokenizer.json");
    let tokenizer = std::fs::read(tokenizer)?;
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|it| it == "jinja"))
        .collect();
    paths.sort();
    let mut models = Vec::new();
    for path in paths {
        let settings = TemplateSettings {
            special_tokens: vec![
                ("bos_token".to_owned(), "<s>".to_owned()),
                ("eos_token".to_owned(), "</s>".to_owned()),
            ],
            ..TemplateSettings::default()
        };
        let source = std::fs::read_to_string(&path)?;
        let counter = Counter::from_template(&tokenizer, source.as_str(), settings)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        models.push((name.into_owned(), counter));
    }
    if models.is_empty() {
        return Err(format!("{}: no templates", folder.display()).into());
    }
    Ok(models)
}

/// Calls that nobody made: xorshift64 decides.
struct Made(u64);

impl Made {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }

    fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    fn text(&mut self) -> String {
        let pieces = self.below(5);
        (0..=pieces)
            .map(|_| PIECES[self.below(PIECES.len())])
            .collect()
    }

    fn call(&mut self) -> (&'static str, Operation, Value) {
        match self.below(5) {
            0 => ("messages", Operation::Messages, self.messages()),
            1 => ("responses", Operation::Responses, self.responses()),
            _ => ("chat", Operation::Chat, self.chat()),
        }
    }

    /// Text, or parts of it.
    fn content(&mut self, kind: &str) -> Value {
        match self.below(6) {
            0 => {
                let parts = self.below(3);
                (0..=parts)
                    .map(|_| json!({"type": kind, "text": self.text()}))
                    .collect()
            }
            1 if self.one_in(4) => json!(""),
            _ => json!(self.text()),
        }
    }

    fn schema(&mut self, depth: usize) -> Value {
        let mut schema = Map::new();
        let kind = ["string", "integer", "number", "boolean", "array", "object"][self.below(6)];
        schema.insert("type".to_owned(), json!(kind));
        if self.one_in(2) {
            schema.insert("description".to_owned(), json!(self.text()));
        }
        if self.one_in(5) {
            schema.insert("enum".to_owned(), json!(["a", "b", self.text()]));
        }
        if self.one_in(6) {
            schema.insert("default".to_owned(), self.value(1));
        }
        if self.one_in(8) {
            schema.insert("type".to_owned(), json!([kind, "null"]));
        }
        if depth > 0 && kind == "array" {
            schema.insert("items".to_owned(), self.schema(depth - 1));
        }
        if depth > 0 && kind == "object" {
            schema.insert("properties".to_owned(), self.properties(depth - 1));
        }
        Value::Object(schema)
    }

    fn properties(&mut self, depth: usize) -> Value {
        let many = self.below(4);
        let mut all = Map::new();
        for at in 0..many {
            all.insert(
                format!("{}{at}", ["at", "city", "größe"][self.below(3)]),
                self.schema(depth),
            );
        }
        Value::Object(all)
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth > 0 { 9 } else { 7 }) {
            0 => Value::Null,
            1 => json!(self.one_in(2)),
            2 => json!(self.below(2_000)),
            3 => json!(-1.5),
            4 => json!([0.1, 1e16, 1e-7, 3.0, 1e22][self.below(5)]),
            5 | 6 => json!(self.text()),
            7 => (0..self.below(3)).map(|_| self.value(depth - 1)).collect(),
            _ => json!({"a": self.value(depth - 1), "ü": self.value(depth - 1)}),
        }
    }

    fn function(&mut self, at: usize) -> Map<String, Value> {
        let mut function = Map::new();
        function.insert("name".to_owned(), json!(format!("look{at}")));
        if !self.one_in(5) {
            function.insert("description".to_owned(), json!(self.text()));
        }
        if !self.one_in(6) {
            let mut schema = json!({"type": "object", "properties": self.properties(2)});
            if self.one_in(2) {
                schema["required"] = json!(["at0"]);
            }
            function.insert("parameters".to_owned(), schema);
        }
        if self.one_in(6) {
            function.insert("strict".to_owned(), json!(self.one_in(2)));
        }
        function
    }

    fn arguments(&mut self) -> Value {
        let many = self.below(3);
        (0..many)
            .map(|at| (format!("a{at}"), self.value(2)))
            .collect::<Map<_, _>>()
            .into()
    }

    fn template_arguments(&mut self, body: &mut Value) {
        if self.one_in(4) {
            let mut own = Map::new();
            for name in ["enable_thinking", "thinking", "preserve_thinking", "x"] {
                if self.one_in(2) {
                    own.insert(name.to_owned(), json!(self.one_in(2)));
                }
            }
            body["chat_template_kwargs"] = Value::Object(own);
        }
    }

    fn chat(&mut self) -> Value {
        let mut all = Vec::new();
        if self.one_in(2) {
            let role = if self.one_in(4) {
                "developer"
            } else {
                "system"
            };
            all.push(json!({"role": role, "content": self.content("text")}));
        }
        let turns = self.below(3);
        for _ in 0..=turns {
            all.push(json!({"role": "user", "content": self.content("text")}));
            if self.one_in(3) {
                break;
            }
            self.answer(&mut all);
        }
        let mut body = json!({"messages": all});
        if self.one_in(2) {
            let many = self.below(3);
            body["tools"] = (0..=many)
                .map(|at| json!({"type": "function", "function": self.function(at)}))
                .collect();
        }
        if self.one_in(6) {
            body["reasoning_effort"] = json!(["none", "low", "medium", "high"][self.below(4)]);
        }
        let ends_in_answer = body["messages"]
            .as_array()
            .and_then(|all| all.last())
            .is_some_and(|last| last["role"] == "assistant");
        if self.one_in(6) || (ends_in_answer && self.one_in(2)) {
            body["add_generation_prompt"] = json!(false);
            if ends_in_answer && self.one_in(2) {
                body["continue_final_message"] = json!(true);
            }
        }
        if self.one_in(12) {
            body["documents"] = json!([{"title": self.text(), "text": self.text()}]);
        }
        self.template_arguments(&mut body);
        body
    }

    /// What the assistant says, and what its tools answer.
    fn answer(&mut self, all: &mut Vec<Value>) {
        let mut answer = json!({"role": "assistant"});
        if self.one_in(3) {
            answer["reasoning_content"] = json!(self.text());
        }
        let calls = if self.one_in(2) { self.below(3) } else { 0 };
        answer["content"] = match calls {
            0 => self.content("text"),
            _ if self.one_in(2) => Value::Null,
            _ => self.content("text"),
        };
        let call = |made: &mut Self, at: usize| {
            let arguments = made.arguments().to_string();
            json!({"id": format!("call{at:05}"), "type": "function",
                "function": {"name": format!("look{at}"), "arguments": arguments}})
        };
        if calls > 0 {
            answer["tool_calls"] = (0..calls).map(|at| call(self, at)).collect();
        }
        all.push(answer);
        for at in 0..calls {
            all.push(
                json!({"role": "tool", "tool_call_id": format!("call{at:05}"),
                "content": self.content("text")}),
            );
        }
    }

    fn messages(&mut self) -> Value {
        let mut all = Vec::new();
        let turns = self.below(3);
        for at in 0..=turns {
            all.push(json!({"role": "user", "content": self.content("text")}));
            if at == turns || self.one_in(4) {
                break;
            }
            let mut blocks = Vec::new();
            if self.one_in(3) {
                blocks.push(json!({"type": "thinking", "thinking": self.text(), "signature": ""}));
            }
            if !self.one_in(3) {
                blocks.push(json!({"type": "text", "text": self.text()}));
            }
            let calls = self.one_in(2);
            if calls || blocks.is_empty() {
                blocks.push(json!({"type": "tool_use", "id": "toolu_1", "name": "look0",
                    "input": self.arguments()}));
            }
            all.push(json!({"role": "assistant", "content": blocks}));
            if calls {
                all.push(json!({"role": "user", "content": [{"type": "tool_result",
                    "tool_use_id": "toolu_1", "content": self.content("text")}]}));
            }
            if self.one_in(5) {
                all.push(json!({"role": "system", "content": self.content("text")}));
            }
        }
        let mut body = json!({"messages": all});
        if self.one_in(2) {
            body["system"] = self.content("text");
        }
        if self.one_in(2) {
            let many = self.below(3);
            let tool = |made: &mut Self, at: usize| {
                let mut function = made.function(at);
                let schema = function.remove("parameters");
                let schema = schema.unwrap_or_else(|| json!({"properties": {}}));
                function.insert("input_schema".to_owned(), schema);
                Value::Object(function)
            };
            body["tools"] = (0..many).map(|at| tool(self, at)).collect();
        }
        if self.one_in(8) {
            body["thinking"] = json!({"type": "disabled"});
        }
        self.template_arguments(&mut body);
        body
    }

    fn responses(&mut self) -> Value {
        let mut items = Vec::new();
        let turns = self.below(3);
        for at in 0..=turns {
            items.push(json!({"role": "user", "content": self.content("input_text")}));
            if at == turns {
                break;
            }
            if self.one_in(3) {
                items.push(json!({"type": "reasoning", "id": "rs", "summary": [],
                    "content": [{"type": "reasoning_text", "text": self.text()}]}));
            }
            if self.one_in(2) {
                items.push(json!({"type": "function_call", "call_id": "call00000",
                    "name": "look0", "arguments": self.arguments().to_string()}));
                items.push(
                    json!({"type": "function_call_output", "call_id": "call00000",
                    "output": self.text()}),
                );
            }
            if self.one_in(2) {
                items.push(json!({"type": "message", "role": "assistant", "id": "m",
                    "status": "completed", "content": [{"type": "output_text",
                    "text": self.text(), "annotations": []}]}));
            }
        }
        let mut body = json!({"input": items});
        if self.one_in(2) {
            body["instructions"] = json!(self.text());
        }
        if self.one_in(2) {
            let many = self.below(3);
            let tool = |made: &mut Self, at: usize| {
                let mut function = made.function(at);
                function.insert("type".to_owned(), json!("function"));
                Value::Object(function)
            };
            body["tools"] = (0..many).map(|at| tool(self, at)).collect();
        }
        if self.one_in(6) {
            let effort = ["none", "low", "high"][self.below(3)];
            body["reasoning"] = json!({ "effort": effort });
        }
        self.template_arguments(&mut body);
        body
    }
}

/// Words, and what templates look for in them.
const PIECES: &[&str] = &[
    "hello",
    " ",
    "  ",
    "\n",
    "\n\n",
    "\t",
    "world",
    "é",
    "東京",
    "🦀",
    "'",
    "\"",
    "\\",
    "<",
    ">",
    "&",
    "{{",
    "}}",
    "{%",
    "</think>",
    "<think>",
    "<think>\nhm\n</think>\n\n",
    "<|im_end|>",
    "<tool_call>",
    "<tool_response>",
    "[INST]",
    "/no_think",
    "/think",
    "<|channel|>final",
    "\u{a0}",
    "\u{2028}",
    "\u{1c}",
    "\u{200b}",
    "1",
    "12.50",
    "Paris",
    "{\"a\": 1}",
    "true",
    "None",
    "ß",
    "ﬁ",
    "\r\n",
    "x-anthropic-billing-header: a\nb",
];
