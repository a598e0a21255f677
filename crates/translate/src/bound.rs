//! How much of a body is taken apart.
//!
//! Each value that is read of a body costs some hundred bytes while its call is translated, however short it is: their number bounds
//! what a call may cost beside the length of its body.
//! Not here: the length of a body (`policy`), who translates a long one (`proxy`).

use crate::fault::{Fault, Result};

/// Values of a body that is translated, at most: those of the longest conversations are a third of them.
const VALUES_MAX: usize = 1 << 17;

/// Refuses a body of more values than a call may have.
pub(crate) fn check(body: &[u8]) -> Result<()> {
    // Each takes two bytes at least.
    if body.len() / 2 > VALUES_MAX && values(body) > VALUES_MAX {
        let says = format!(
            "the body has more than {VALUES_MAX} values (objects, lists and what is in them), the most that a call may have that is \
             translated; say it in fewer messages, parts or tools"
        );
        return Err(Fault::new(says));
    }
    Ok(())
}

/// Values, by what stands before each; more where the body is no JSON.
fn values(body: &[u8]) -> usize {
    let (mut count, mut at) = (1, 0);
    while let Some(byte) = body.get(at) {
        match byte {
            b'"' => at = end_of_text(body, at),
            b',' | b'{' | b'[' => {
                count += 1;
                at += 1;
            }
            _ => at += 1,
        }
    }
    count
}

/// Where the text ends that begins here.
fn end_of_text(body: &[u8], from: usize) -> usize {
    let mut at = from + 1;
    loop {
        match body.get(at) {
            None => return body.len(),
            Some(b'"') => return at + 1,
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    //! How values are counted.

    use super::*;

    #[test]
    fn a_body_of_too_many_values_is_refused_and_a_long_one_of_few_is_not() {
        let parts = |count: usize| format!("[{}1]", "1,".repeat(count));
        assert_eq!(check(parts(VALUES_MAX - 2).as_bytes()), Ok(()));
        let fault = check(parts(VALUES_MAX).as_bytes()).expect_err("too many");
        let unfit = wire::filter::Unfit::from(fault);
        assert!(unfit.what.contains("131072 values"), "{}", unfit.what);
        let text = format!(r#"["{}"]"#, r#"[{,\""#.repeat(VALUES_MAX));
        assert_eq!(check(text.as_bytes()), Ok(()), "what a text holds is none");
        let cut = format!(r#"["{}\"#, ",".repeat(4 * VALUES_MAX));
        assert_eq!(check(cut.as_bytes()), Ok(()));
    }
}
