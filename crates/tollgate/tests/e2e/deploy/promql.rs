//! Which metrics, labels and values a PromQL expression queries.
//!
//! It reads tokens and not the grammar: Prometheus itself validates expressions.

/// What an expression queries.
#[derive(Debug, Default)]
pub(super) struct ParsedQuery {
    pub(super) selectors: Vec<Selector>,
    /// Labels in `by`, `without`, `on`, `ignoring` and `group_*`.
    pub(super) groupings: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Selector {
    pub(super) name: String,
    pub(super) matchers: Vec<Matcher>,
}

#[derive(Debug)]
pub(super) struct Matcher {
    pub(super) label: String,
    pub(super) value: String,
    /// Whether the operator is `=` and not a pattern or a negation.
    pub(super) is_equal: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Word(String),
    Text(String),
    Sign(char),
}

const GROUPINGS: [&str; 6] = [
    "by",
    "without",
    "on",
    "ignoring",
    "group_left",
    "group_right",
];
const OPERATORS: [&str; 5] = ["and", "or", "unless", "bool", "offset"];

impl ParsedQuery {
    pub(super) fn read(expr: &str) -> Self {
        let tokens = tokens(expr);
        let mut query = Self::default();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at += 1;
            let Token::Word(word) = token else { continue };
            let next = tokens.get(at);
            if GROUPINGS.contains(&word.as_str()) {
                let end = position(&tokens, at, ')');
                let labels = tokens[at..end].iter().filter_map(|token| match token {
                    Token::Word(label) => Some(label.clone()),
                    Token::Text(_) | Token::Sign(_) => None,
                });
                query.groupings.extend(labels);
                at = end;
            } else if is_called(next) || OPERATORS.contains(&word.as_str()) {
                // A function, an aggregation or an operator.
            } else {
                let mut matchers = Vec::new();
                if next == Some(&Token::Sign('{')) {
                    let end = position(&tokens, at, '}');
                    matchers = tokens[at + 1..end]
                        .split(|t| *t == Token::Sign(','))
                        .filter_map(matcher)
                        .collect();
                    at = end;
                }
                let name = word.clone();
                query.selectors.push(Selector { name, matchers });
            }
        }
        query
    }
}

/// Whether a word followed by this token is a function or an aggregation: `rate(`, `sum by`.
fn is_called(next: Option<&Token>) -> bool {
    match next {
        Some(Token::Sign(sign)) => *sign == '(',
        Some(Token::Word(word)) => matches!(word.as_str(), "by" | "without"),
        Some(Token::Text(_)) | None => false,
    }
}

fn matcher(tokens: &[Token]) -> Option<Matcher> {
    let (Token::Word(label), Token::Text(value)) = (tokens.first()?, tokens.last()?) else {
        panic!("not a matcher: {tokens:?}");
    };
    Some(Matcher {
        label: label.clone(),
        value: value.clone(),
        is_equal: tokens[1..tokens.len() - 1] == [Token::Sign('=')],
    })
}

fn position(tokens: &[Token], from: usize, sign: char) -> usize {
    let found = tokens[from..]
        .iter()
        .position(|token| *token == Token::Sign(sign));
    from + found.unwrap_or_else(|| panic!("no {sign} in {tokens:?}"))
}

fn tokens(expr: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = expr;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        let length = match first {
            '"' => {
                let end = rest[1..].find('"').expect("a text that ends");
                tokens.push(Token::Text(rest[1..=end].to_owned()));
                end + 2
            }
            // A duration.
            '[' => rest.find(']').expect("a span that ends") + 1,
            // A number.
            '0'..='9' => rest
                .find(|c: char| !is_word(c) && c != '.')
                .unwrap_or(rest.len()),
            c if is_word(c) => {
                let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
                tokens.push(Token::Word(rest[..end].to_owned()));
                end
            }
            c => {
                if !c.is_whitespace() {
                    tokens.push(Token::Sign(c));
                }
                c.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    tokens
}
