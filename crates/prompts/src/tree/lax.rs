//! Values of another JSON type that an engine's validation takes all the same (pydantic's lax mode, as vLLM 0.32.0 has it).
//!
//! Invariant: what is read has the value that the engine reads; what it may read otherwise, or refuse, is not read.

use super::Tree;

/// What stands for true and false, in any case.
const YES: [&str; 6] = ["1", "on", "t", "true", "y", "yes"];
const NO: [&str; 6] = ["0", "off", "f", "false", "n", "no"];
/// The longest number, in digits, that is read from text.
const LONGEST: usize = 18;
/// Whole numbers up to here are exact as floats.
const WIDEST: f64 = 9_007_199_254_740_992.0;

impl Tree<'_> {
    /// The value as a flag.
    #[must_use]
    pub fn lax_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(flag) => Some(*flag),
            Self::Number(number) if number.as_f64() == Some(1.0) => Some(true),
            Self::Number(number) if number.as_f64() == Some(0.0) => Some(false),
            Self::Text(text) => {
                let is_among =
                    |words: [&str; 6]| words.iter().any(|it| text.eq_ignore_ascii_case(it));
                is_among(YES)
                    .then_some(true)
                    .or(is_among(NO).then_some(false))
            }
            _ => None,
        }
    }

    /// The value as a whole number.
    #[must_use]
    pub fn lax_integer(&self) -> Option<i64> {
        match self {
            Self::Bool(flag) => Some(i64::from(*flag)),
            Self::Number(number) => number.as_i64().or_else(|| whole(number.as_f64()?)),
            Self::Text(text) => {
                let text = text.trim_matches([' ', '\t', '\r', '\n']);
                let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
                let is_number = (1..=LONGEST).contains(&digits.len())
                    && digits.bytes().all(|byte| byte.is_ascii_digit());
                text.parse().ok().filter(|_| is_number)
            }
            _ => None,
        }
    }
}

fn whole(float: f64) -> Option<i64> {
    if float.fract() != 0.0 || float.abs() > WIDEST {
        return None;
    }
    // Written without an exponent or digits behind the point.
    format!("{float:.0}").parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Tree;

    fn tree(value: &serde_json::Value) -> Tree<'static> {
        let text = value.to_string();
        let mut reader = serde_json::Deserializer::from_reader(text.as_bytes());
        serde::Deserialize::deserialize(&mut reader).expect("JSON")
    }

    #[test]
    fn flags_are_read_as_pydantic_reads_them() {
        for yes in [
            json!(true),
            json!(1),
            json!(1.0),
            json!("YES"),
            json!("t"),
            json!("on"),
        ] {
            assert_eq!(tree(&yes).lax_bool(), Some(true), "{yes}");
        }
        for no in [
            json!(false),
            json!(0),
            json!(0.0),
            json!("OFF"),
            json!("N"),
            json!("0"),
        ] {
            assert_eq!(tree(&no).lax_bool(), Some(false), "{no}");
        }
        for none in [
            json!(2),
            json!(2.5),
            json!(" true"),
            json!("0.0"),
            json!([]),
            json!(null),
        ] {
            assert_eq!(tree(&none).lax_bool(), None, "{none}");
        }
    }

    #[test]
    fn whole_numbers_are_read_as_pydantic_reads_them() {
        for (value, number) in [
            (json!(5), 5),
            (json!(-1), -1),
            (json!(5.0), 5),
            (json!(-1.0), -1),
            (json!(true), 1),
            (json!(false), 0),
            (json!("5"), 5),
            (json!(" 5 "), 5),
            (json!("+5"), 5),
            (json!("-1"), -1),
            (json!("05"), 5),
        ] {
            assert_eq!(tree(&value).lax_integer(), Some(number), "{value}");
        }
        for none in [
            json!(5.5),
            json!("x"),
            json!(""),
            json!("+-5"),
            json!(1e300),
            json!([1]),
        ] {
            assert_eq!(tree(&none).lax_integer(), None, "{none}");
        }
    }
}
