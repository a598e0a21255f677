//! Probes of the tokenizer alone.

use wire::dialect::Operation;

use super::Fixed;
use crate::shape::Feature::{Embeddings, Marks, Special, Text, Unicode};

pub(super) const ALL: [Fixed; 8] = [
    Fixed {
        name: "text_words",
        operation: Operation::Completions,
        body: r#"{"prompt":"The build of the third module fails again, and nobody knows why it isn't green: 1234567 lines, 0.25 seconds."}"#,
        features: &[Text],
    },
    Fixed {
        name: "text_code",
        operation: Operation::Completions,
        body: r#"{"prompt":"def sum_of(items):\n    \"\"\"Adds them.\"\"\"\n    total = 0\n\n    for item in items:\n\ttotal += item['price'] * 3   # cents\n    return total\n\n\n\nif x != y && !(a || b) { panic!(\"{}\", x_y::<u8>()); }\r\n"}"#,
        features: &[Text],
    },
    Fixed {
        name: "text_spaces",
        operation: Operation::Completions,
        body: r#"{"prompt":"  two before,   three within, \t tabs\t\t, and some behind    "}"#,
        features: &[Text],
    },
    Fixed {
        name: "text_scripts",
        operation: Operation::Completions,
        body: r#"{"prompt":"Größe, déjà vu, Ελληνικά, Привет мир, שלום, مرحبا بالعالم, हिन्दी में, ภาษาไทย, 日本語と中文, 한국어"}"#,
        features: &[Text, Unicode],
    },
    Fixed {
        name: "text_symbols",
        operation: Operation::Completions,
        body: r#"{"prompt":"→ ∑ ≤ ½ ﬁ “quoted” – 👩‍👩‍👧 🇨🇭 e\u0301 \u00a0no-break\u2003wide ①²"}"#,
        features: &[Text, Unicode],
    },
    Fixed {
        name: "text_marks",
        operation: Operation::Completions,
        body: r#"{"prompt":"Spelled: <|im_start|>user <|endoftext|> <|eot_id|> <|start|> <s> </s> [INST] <think> <bos>"}"#,
        features: &[Text, Marks],
    },
    Fixed {
        name: "text_bare",
        operation: Operation::Completions,
        body: r#"{"prompt":"Nothing is put around this.","add_special_tokens":false}"#,
        features: &[Text, Special],
    },
    Fixed {
        name: "embeddings_words",
        operation: Operation::Embeddings,
        body: r#"{"input":"A short text that is to be embedded."}"#,
        features: &[Embeddings],
    },
];
