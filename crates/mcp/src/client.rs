//! What a client can do for servers: ask a person, ask a model, name its roots.
//!
//! A client with a session says so once, and its session holds it; to a server without sessions it is said with each request.
//! Not here: sessions (`session`), requests (`bridge`).

use std::ops::Range;

use wire::json::Kind;

use crate::envelope::{Value, members};

/// What a client can do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Can(u8);

/// The members of its capabilities, and what of each further.
const KNOWN: [(&str, &[&str]); 3] = [
    ("roots", &[]),
    ("sampling", &["context", "tools"]),
    ("elicitation", &["form", "url"]),
];

impl Can {
    /// As the params of its `initialize` say it.
    #[must_use]
    pub fn of_initialize(message: &[u8], params: Option<&Range<usize>>) -> Self {
        let text = params.and_then(|params| message.get(params.clone()));
        let said = text.and_then(|text| members(text, ["capabilities"], 0).ok());
        match said {
            Some([Some((Kind::Object, text, _))]) => Self::of(text),
            _ => Self::default(),
        }
    }

    /// As an object of capabilities says it.
    #[must_use]
    pub fn of(capabilities: &[u8]) -> Self {
        let is_object = |value: &Option<Value<'_>>| matches!(value, Some((Kind::Object, ..)));
        let (mut bits, mut bit) = (0, 1);
        for (member, further) in KNOWN {
            let said = members(capabilities, [member], 0).ok();
            let said = said
                .and_then(|[said]| said)
                .filter(|said| said.0 == Kind::Object);
            if said.is_some() {
                bits |= bit;
            }
            bit <<= 1;
            for member in further {
                let within = said
                    .as_ref()
                    .and_then(|(_, text, _)| members(text, [member], 0).ok());
                if within.is_some_and(|[within]| is_object(&within)) {
                    bits |= bit;
                }
                bit <<= 1;
            }
        }
        Self(bits)
    }

    /// As an object of capabilities.
    #[must_use]
    pub fn capabilities(self) -> String {
        let mut bit = 1;
        let mut next = || {
            let is_said = self.0 & bit != 0;
            bit <<= 1;
            is_said
        };
        let mut out = Vec::new();
        for (member, further) in KNOWN {
            let is_said = next();
            let within = further.iter().filter(|_| next());
            let within: Vec<String> = within.map(|of| format!(r#""{of}":{{}}"#)).collect();
            if is_said {
                out.push(format!(r#""{member}":{{{}}}"#, within.join(",")));
            }
        }
        format!("{{{}}}", out.join(","))
    }

    /// Whether it answers requests of this method.
    #[must_use]
    pub fn answers(self, method: &str) -> bool {
        let bit = match method {
            "roots/list" => 1,
            "sampling/createMessage" => 2,
            "elicitation/create" => 16,
            _ => return false,
        };
        self.0 & bit != 0
    }

    pub(crate) const fn bits(self) -> u8 {
        self.0
    }

    pub(crate) const fn of_bits(bits: u8) -> Self {
        Self(bits)
    }
}

#[cfg(test)]
mod tests {
    //! What is said once is what is said with each request.

    use super::Can;

    #[test]
    fn what_a_client_can_do_is_kept_as_it_says_it() {
        for text in [
            "{}",
            r#"{"roots":{}}"#,
            r#"{"sampling":{"tools":{}}}"#,
            r#"{"sampling":{"context":{},"tools":{}},"elicitation":{"form":{},"url":{}}}"#,
            r#"{"roots":{},"elicitation":{"url":{}}}"#,
        ] {
            let can = Can::of(text.as_bytes());
            assert_eq!(can.capabilities(), text);
            assert_eq!(Can::of_bits(can.bits()), can);
        }
        let can = Can::of(br#"{"roots":{"listChanged":true},"sampling":7,"tasks":{}}"#);
        assert_eq!(can.capabilities(), r#"{"roots":{}}"#);
        assert!(can.answers("roots/list") && !can.answers("sampling/createMessage"));
        let can = Can::of(br#"{"elicitation":{}}"#);
        assert!(can.answers("elicitation/create") && !can.answers("roots/list"));
        assert!(!can.answers("tools/call"));
    }
}
