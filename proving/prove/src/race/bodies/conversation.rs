//! Messages: a question, a request about files, and the conversation of an agent that grows by appending.
//!
//! An agent's turn adds what it said last, with the call of a tool, and what the tool gave back; every fourth turn it ends its
//! task and is given the next. A request repeats everything before it.
//! Invariant: a turn's messages are the beginning of the next turn's; each turn ends after exactly the bytes that it is to have.
//! Not here: what stands around the messages (`scenario`), how they are made new (`text`).

use super::author::Author;
use super::text::Text;

/// The shortest message that is made, with its JSON.
const LEAST: usize = 160;
/// Turns of an agent's task; the last of them ends it.
const TASK: usize = 4;

/// The messages of a conversation with the end of each turn.
#[derive(Debug, Clone, Default)]
pub(super) struct Script {
    pub(super) text: Text,
    /// Where the messages of each turn end.
    pub(super) ends: Vec<u32>,
}

/// What the content of a message is.
#[derive(Clone, Copy)]
enum Content {
    Prose,
    Code,
    Printed,
}

impl Script {
    /// One turn: what a system is told, and a question.
    pub(super) fn prose(author: &mut Author, bytes: usize) -> Self {
        let mut script = Self::default();
        script.told(author, bytes / 4);
        let question = (r#"{"role":"user","content":""#, Content::Prose, r#""}"#);
        script.message(author, question, bytes);
        script.end();
        script
    }

    /// One turn: files of source code and what is asked about them.
    pub(super) fn code(author: &mut Author, bytes: usize) -> Self {
        let mut script = Self::default();
        script.told(author, LEAST * 2);
        let files = (r#"{"role":"user","content":""#, Content::Code, r#""}"#);
        script.message(author, files, bytes);
        script.end();
        script
    }

    /// Turns that end at `ends`, in rising order.
    pub(super) fn agent(author: &mut Author, ends: impl Iterator<Item = usize>) -> Self {
        let mut script = Self::default();
        for (turn, end) in ends.enumerate() {
            if turn == 0 {
                script.told(author, end / 3);
                let task = (r#"{"role":"user","content":""#, Content::Prose, r#""}"#);
                script.message(author, task, end);
            } else if turn % TASK == 0 {
                script.next_task(author, end);
            } else {
                script.tool(author, end);
            }
            script.end();
        }
        script
    }

    fn end(&mut self) {
        self.ends
            .push(u32::try_from(self.text.len()).unwrap_or(u32::MAX));
    }

    /// The system's message, which ends at `end`.
    fn told(&mut self, author: &mut Author, end: usize) {
        let end = end.max(LEAST);
        let system = (r#"{"role":"system","content":""#, Content::Prose, r#""}"#);
        self.message(author, system, end);
    }

    /// The agent answers, and is asked for something else.
    fn next_task(&mut self, author: &mut Author, end: usize) {
        let middle = self.text.len() + (end - self.text.len()) / 2;
        let answer = (
            r#"{"role":"assistant","content":""#,
            Content::Prose,
            r#""}"#,
        );
        self.message(author, answer, middle);
        let task = (r#"{"role":"user","content":""#, Content::Prose, r#""}"#);
        self.message(author, task, end);
    }

    /// The agent calls a tool, which gives something back.
    fn tool(&mut self, author: &mut Author, end: usize) {
        let called = self.text.len() + ((end - self.text.len()) / 3).max(LEAST * 3 / 2);
        let mut id = Text::default();
        id.json("call_");
        author.write(&mut id, "{h}{h}", "");
        let id = id.fixed();
        let mut call = Text::default();
        call.json(r#"","tool_calls":[{"id":""#);
        call.append(&id);
        call.json(r#"","type":"function","function":{"name":""#);
        let (name, arguments) = TOOLS[author.between(0, TOOLS.len() as u64 - 1) as usize];
        call.json(name);
        call.json(r#"","arguments":""#);
        // The arguments are JSON in a string of JSON.
        let mut said = Text::default();
        author.write(&mut said, arguments, "");
        call.append(&said);
        call.json(r#""}}]}"#);
        self.whole(
            author,
            r#"{"role":"assistant","content":""#,
            (Content::Prose, &call),
            called,
        );
        let mut begin = Text::default();
        begin.json(r#"{"role":"tool","tool_call_id":""#);
        begin.append(&id);
        begin.json(r#"","content":""#);
        let content = match author.between(0, 2) {
            0 => Content::Printed,
            1 => Content::Prose,
            _ => Content::Code,
        };
        let mut close = Text::default();
        close.json(r#""}"#);
        self.comma();
        self.text.append(&begin);
        self.content(author, (content, &close), end);
    }

    /// A message that ends at `end`.
    fn message(
        &mut self,
        author: &mut Author,
        (open, content, close): (&str, Content, &str),
        end: usize,
    ) {
        let mut last = Text::default();
        last.json(close);
        self.whole(author, open, (content, &last), end);
    }

    fn whole(&mut self, author: &mut Author, open: &str, content: (Content, &Text), end: usize) {
        self.comma();
        self.text.json(open);
        self.content(author, content, end);
    }

    fn comma(&mut self) {
        if self.text.len() > 0 {
            self.text.json(",");
        }
    }

    /// The content of a message, and its close, up to `end`.
    fn content(&mut self, author: &mut Author, (content, close): (Content, &Text), end: usize) {
        let from = self.text.len();
        let bytes = end.saturating_sub(from + close.len());
        author.begin(&self.text);
        match content {
            Content::Prose => author.prose(&mut self.text, bytes),
            Content::Code => author.code(&mut self.text, bytes),
            Content::Printed => author.printed(&mut self.text, bytes),
        }
        self.text.fit(from, bytes);
        self.text.append(close);
    }
}

/// Tools that are called, with their arguments: quotes of the inner JSON are written as the outer has them.
const TOOLS: [(&str, &str); 4] = [
    ("read_file", r#"{"path":"src/{n}/{n}_{x}.rs","from":{#}}"#),
    ("run", r#"{"command":"cargo test -p {n} {v}_{n}"}"#),
    ("search", r#"{"query":"{q}","most":{#}}"#),
    (
        "edit_file",
        r#"{"path":"{n}/{n}.py","old":"{n}_{n}","new":"{n}_{x}"}"#,
    ),
];
