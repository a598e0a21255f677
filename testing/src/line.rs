//! Command lines of help and pages, for the tests that show that they are taken.
//!
//! Not here: what a line means.

/// The words of a line as a shell makes them: up to a redirection, a pipe or a remark (after three blanks), without the
/// variables before.
#[must_use]
pub fn words(line: &str) -> Vec<String> {
    let line = line.split("   ").next().unwrap_or_default();
    let line = line.split(['>', '|']).next().unwrap_or_default();
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for letter in line.chars() {
        match (letter, words.last_mut()) {
            ('\'', _) => is_quoted = !is_quoted,
            (' ', _) if !is_quoted => words.push(String::new()),
            (_, Some(word)) => word.push(letter),
            (_, None) => {}
        }
    }
    let is_before = |word: &String| word.is_empty() || word.contains('=');
    let begin = words.iter().position(|word| !is_before(word)).unwrap_or(0);
    let words = words.split_off(begin).into_iter();
    words.filter(|word| !word.is_empty()).collect()
}

/// The command lines of a program that stand between backquotes on a page.
pub fn commands<'p>(page: &'p str, program: &'p str) -> impl Iterator<Item = &'p str> {
    let between = page.split('`').skip(1).step_by(2);
    between.filter(move |text| {
        let rest = text.strip_prefix(program);
        rest.is_some_and(|rest| rest.starts_with(' '))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_a_shell() {
        let line = "KEY=x prove scrape --query 'rate(a)' out   a remark | sort > file";
        assert_eq!(
            words(line),
            ["prove", "scrape", "--query", "rate(a)", "out"]
        );
        assert_eq!(words("prove tap > file"), ["prove", "tap"]);
        let page = "a `prove run` and `prover x`, `tollgate check`, `prove`";
        assert_eq!(commands(page, "prove").collect::<Vec<_>>(), ["prove run"]);
    }
}
