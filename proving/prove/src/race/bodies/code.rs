//! Source code, and what programs print: shapes of several languages, filled with names.
//!
//! A language is a handful of templates: how a unit opens, statements, blocks that hold statements, how it closes. None of it
//! compiles, all of it looks to a tokenizer as code does: indented, with names of several words, numbers, strings and comments.
//! Invariant: any number of bytes can be asked for.
//! Not here: the templates' places (`author`).

use super::author::Author;
use super::text::Text;

/// The shape of a language.
struct Language {
    extension: &'static str,
    indent: &'static str,
    opens: &'static [&'static str],
    statements: &'static [&'static str],
    /// Opening and closing line.
    blocks: &'static [(&'static str, &'static str)],
    close: &'static str,
}

const LANGUAGES: [&Language; 6] = [&RUST, &PYTHON, &TYPESCRIPT, &GO, &C, &SETTINGS];

const RUST: Language = Language {
    extension: "rs",
    indent: "    ",
    opens: &[
        "/// {s}\npub fn {v}_{n}(&self, {n}: &str, {n}_{n}: u64) -> Result<{N}, {N}Error> {\n",
        "fn {n}_of({n}: &[{N}], {v}: impl Fn(&{N}) -> bool) -> Option<usize> {\n",
        "/// {s}\n///\n/// # Errors\n/// {s}\nasync fn {v}_{a}_{n}(mut {n}: {N}{N}, {x}: Duration) -> io::Result<()> {\n",
        "#[test]\nfn {a}_{n}_{v}s_{n}() {\n",
    ],
    statements: &[
        "let {n}_{n} = self.{n}.{n}({n}, {#});\n",
        "let mut {n} = Vec::with_capacity({#} * {n}.len());\n",
        "self.{n}.{v}_{n}(&{n}.{n}, {N}::{N})?;\n",
        "assert_eq!({n}.{n}_{n}(), Some({#}), \"{q}: {n:?}\");\n",
        "// {s}\n",
        "let {x} = {n}.iter().filter(|{n}| {n}.{n} > {#}).map({N}::{v}).collect::<Vec<_>>();\n",
        "tracing::debug!({n} = {n}.len(), \"{q}\");\n",
        "const {N}_{N}: u64 = 0x{h};\n",
        "return Err({N}Error::{N}{N} { {n}, {n}: \"{q}\".into() });\n",
    ],
    blocks: &[
        ("if {n}.{n} >= {#} && !{n}.is_{a}() {\n", "}\n"),
        ("for ({n}, {n}) in {n}.{n}s().enumerate() {\n", "}\n"),
        ("match self.{n}.{v}({n}) {\n", "}\n"),
        ("while let Some({n}) = {n}.next() {\n", "}\n"),
    ],
    close: "}\n\n",
};

const PYTHON: Language = Language {
    extension: "py",
    indent: "    ",
    opens: &[
        "def {v}_{n}({n}: list[str], {n}={#}, *, {a}: bool = False) -> dict[str, {N}]:\n    \"\"\"{s}\"\"\"\n",
        "class {N}{N}({N}Base):\n    \"\"\"{s}\n\n    {s}\n    \"\"\"\n",
        "async def {v}(self, {n}: {N}, {x}=None):\n",
        "@pytest.mark.parametrize(\"{n}\", [{#}, {#}, {#}])\ndef test_{a}_{n}_{v}s({n}, tmp_path):\n",
    ],
    statements: &[
        "{n} = self.{n}_{n}.get(\"{n}_{n}\", {#})\n",
        "{n}_{n} = [{n}.{n} for {n} in {n}s if {n}.{a} is not None]\n",
        "logger.info(\"{q}: %s (%d)\", {n}, len({n}_{n}))\n",
        "assert {n}.{v}({n}) == {\"{n}\": {#}, \"{n}\": \"{x}\"}, f\"{q}: {{n}!r}\"\n",
        "# {s}\n",
        "raise {N}Error(f\"{q}, not {{n}}\") from {n}\n",
        "{n}[\"{n}\"] = np.{v}({n}[{#}:], axis={#}) * 0.{#}\n",
        "await self._{v}_{n}({n}, timeout={#})\n",
        "return {n}, {n}_{n}\n",
    ],
    blocks: &[
        ("if {n} and {n}.{n} < {#}:\n", ""),
        ("for {n}, {n} in sorted({n}.items()):\n", ""),
        ("with open({n} / \"{n}.{x}\", \"rb\") as {n}:\n", ""),
        ("try:\n", "# {q}\n"),
    ],
    close: "\n\n",
};

const TYPESCRIPT: Language = Language {
    extension: "ts",
    indent: "  ",
    opens: &[
        "export async function {v}{N}({n}: {N}[], { {n}, {n} = {#} }: {N}Options): Promise<{N}> {\n",
        "/** {s} */\nexport class {N}{N} implements {N} {\n",
        "export const use{N} = ({n}: string) => {\n",
        "describe('{q}', () => {\n",
    ],
    statements: &[
        "const { {n}, {n}{N} } = await this.{n}.{v}({n}, '{n}-{n}');\n",
        "const {x} = {n}.map(({n}) => ({ ...{n}, {n}: {n}.{n} ?? {#} }));\n",
        "expect({n}.{n}{N}).toEqual({ {n}: {#}, {n}: `{q} ${{n}}` });\n",
        "// {s}\n",
        "this.{n}{N} = new Map<string, {N}>();\n",
        "throw new {N}Error(`{q}: ${{n}.{n}}`, { cause: {n} });\n",
        "return <{N} key={{n}.{n}} className=\"{n}-{#} {n}\" on{N}={() => {v}({n})} />;\n",
        "console.warn('{q}', JSON.stringify({n}, null, {#}));\n",
    ],
    blocks: &[
        ("if (!{n}.{a} || {n}.length > {#}) {\n", "}\n"),
        ("for (const {n} of Object.values({n}.{n}s)) {\n", "}\n"),
        ("{n}.on('{n}', async ({n}) => {\n", "});\n"),
    ],
    close: "}\n\n",
};

const GO: Language = Language {
    extension: "go",
    indent: "\t",
    opens: &[
        "// {N} {v}s the {a} {n}. {s}\nfunc (s *{N}{N}) {N}(ctx context.Context, {n} string, {n} int) (*{N}, error) {\n",
        "func Test{N}{N}(t *testing.T) {\n",
        "func new{N}({n} []byte, opts ...{N}Option) *{N} {\n",
    ],
    statements: &[
        "{n} := s.{n}.{N}({n}, {#})\n",
        "defer {n}.Close()\n",
        "// {s}\n",
        "s.logger.Info(\"{q}\", \"{n}\", {n}, \"{n}\", len({n}.{N}s))\n",
        "{n}[\"{n}/{x}\"] = append({n}[\"{n}\"], {N}{N}: {n}, {N}: {#}})\n",
        "return nil, fmt.Errorf(\"{q} %q: %w\", {n}, err)\n",
        "ctx, cancel := context.WithTimeout(ctx, {#}*time.Millisecond)\n",
        "atomic.AddInt64(&s.{n}{N}, int64({n}))\n",
    ],
    blocks: &[
        ("if err := {n}.{N}(ctx, {n}); err != nil {\n", "}\n"),
        ("for {n}, {n} := range {n}.{N}s {\n", "}\n"),
        ("switch {n}.{N} {\n", "}\n"),
        ("go func() {\n", "}()\n"),
    ],
    close: "}\n\n",
};

const C: Language = Language {
    extension: "c",
    indent: "\t",
    opens: &[
        "/*\n * {s}\n */\nstatic int {n}_{v}(struct {n}_{n} *{n}, size_t {n}, const char *{x})\n{\n",
        "void {n}_{n}_{v}(struct {n} *{n}, u32 {n})\n{\n",
    ],
    statements: &[
        "{n}->{n}_{n} = {n}[{#}] & 0x{h};\n",
        "pr_warn(\"{n}: {q} (%d)\\n\", {n}->{n});\n",
        "memcpy({n}->{n}, {n} + {#}, sizeof(*{n}));\n",
        "/* {s} */\n",
        "#define {N}_{N} ({#} << {#})\n",
        "return -E{N};\n",
        "list_add_tail(&{n}->{n}, &{n}->{n}_list);\n",
    ],
    blocks: &[
        ("if (!{n} || {n}->{n} > {#}) {\n", "}\n"),
        ("for (i = 0; i < {n}->{n}_count; i++) {\n", "}\n"),
        ("while ({n}-- > {#}) {\n", "}\n"),
    ],
    close: "}\n\n",
};

const SETTINGS: Language = Language {
    extension: "yaml",
    indent: "  ",
    opens: &["# {s}\n{n}:\n", "---\nname: {n}-{x}\n{n}s:\n"],
    statements: &[
        "{n}: {#}\n",
        "{n}_{n}: \"{q}\"\n",
        "- {n}: {n}-{x}\n",
        "{n}: [{#}, {#}, {#}]\n",
        "image: {x}/{n}:{#}.{#}.{#}@sha256:{h}{h}\n",
        "- { name: {n}, value: \"{#}{n}\", {n}: {a} }\n",
    ],
    blocks: &[("{n}:\n", ""), ("- {n}:\n", "")],
    close: "\n",
};

const PRINTED: [&str; 12] = [
    "2026-0{1}-1{1}T0{1}:4{1}:1{1}.{#}Z  INFO {n}::{n}: {q} {n}={#} {n}=\"{n}/{x}\" took={#}µs\n",
    "2026-0{1}-1{1}T0{1}:4{1}:1{1}.{#}Z  WARN {n}::{n}: {q}, {n}={h}-{#}\n",
    "test {n}::tests::{a}_{n}_{v}s_{n} ... ok\n",
    "error[E0{#}]: {q}\n  --> src/{n}/{n}.rs:{#}:{#}\n",
    "-rw-r--r--  1 {x} staff  {#} Nov  {1} 10:4{1} {n}_{n}.{x}\n",
    "{\"{n}\":{#},\"{n}_{n}\":\"{n}\",\"{n}\":[{#},{#}],\"id\":\"{h}{h}\"}\n",
    "+    {n}.{v}({n}, {#})  # {q}\n",
    "-    {n}.{v}({n})\n",
    "@@ -{#},{#} +{#},{#} @@ {n}_{n}\n",
    "  {#} passed, {#} failed; {#} {n}s in {#}.{#} s\n",
    "{n}/{n}/{n}_{x}.py:{#}:    {n} = {v}({n}, {n}={#})\n",
    "Traceback: {N}Error: {q} ({f})\n",
];

impl Author {
    /// Files of several languages, at least `bytes` of them.
    pub(super) fn code(&mut self, text: &mut Text, bytes: usize) {
        let end = text.len() + bytes;
        while text.len() < end {
            let language = self.one(&LANGUAGES);
            let header = ["--- {n}/{n}_{x}.", language.extension, "\n"].concat();
            self.write(text, &header, "");
            for _ in 0..self.between(2, 8) {
                if text.len() < end {
                    self.unit(text, language);
                }
            }
        }
    }

    /// What programs print, at least `bytes` of it.
    pub(super) fn printed(&mut self, text: &mut Text, bytes: usize) {
        let end = text.len() + bytes;
        while text.len() < end {
            let template = self.one(&PRINTED);
            self.write(text, template, "");
        }
    }

    fn unit(&mut self, text: &mut Text, language: &Language) {
        let open = self.one(language.opens);
        self.write(text, open, "");
        for _ in 0..self.between(3, 9) {
            self.statement(text, language, 1);
        }
        self.write(text, language.close, "");
    }

    /// A line, or a block of lines that lie one deeper.
    fn statement(&mut self, text: &mut Text, language: &Language, depth: usize) {
        let indent = language.indent.repeat(depth);
        if depth < 4 && self.chance(25) {
            let at = self.between(0, language.blocks.len() as u64 - 1) as usize;
            let (open, close) = language.blocks[at];
            self.write(text, open, &indent);
            for _ in 0..self.between(1, 4) {
                self.statement(text, language, depth + 1);
            }
            if !close.is_empty() {
                self.write(text, close, &indent);
            }
        } else {
            let line = self.one(language.statements);
            self.write(text, line, &indent);
        }
    }
}
