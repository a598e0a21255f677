//! What a person is told to do.

use super::OpenError;

#[test]
fn commands_that_are_told_take_any_path() {
    let path = "/var/o'neill's ledger/usage.db".to_owned();
    let says = OpenError::Linked { path, links: 2 }.to_string();
    let quoted = r"'/var/o'\''neill'\''s ledger/usage.db'";
    for command in [
        format!("find / -samefile {quoted})"),
        format!("cp -p {quoted} {quoted}.own && mv {quoted}.own {quoted}"),
    ] {
        assert!(says.contains(&command), "{command}: {says}");
    }
}
