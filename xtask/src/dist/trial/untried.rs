//! What was not tried, and why: said last, where it is not lost among what was.
//!
//! Invariant: what a program that can be installed would try counts as lacking; what this machine does not permit does not, such as
//! booting a container within one.

use std::fmt;

/// What was left out.
#[derive(Debug, Default)]
pub(in crate::dist) struct Untried {
    /// Something has to be installed, or run as root.
    lacking: Vec<String>,
    /// The machine lets nobody do it.
    refused: Vec<String>,
}

impl Untried {
    /// A program is not installed.
    pub(super) fn lacks(&mut self, what: &str, program: &str, package: &str) {
        let says = format!("{what}: {program} is not installed (apt-get install {package})");
        self.lacking.push(says);
    }

    /// Whoever runs it may not do what it takes.
    pub(super) fn needs_root(&mut self, what: &str) {
        self.lacking.push(format!("{what} needs the user root"));
    }

    /// The machine refuses, for the reason that it gives.
    pub(super) fn refused(&mut self, what: &str, reason: &str) {
        self.refused.push(format!("{what}: {reason}"));
    }

    /// Fails where something could have been tried.
    pub(in crate::dist) fn all_tried(&self) -> Result<(), String> {
        match self.lacking.len() {
            0 => Ok(()),
            count => Err(format!(
                "{count} not tried that could be: `cargo xtask dist setup` installs what is needed"
            )),
        }
    }
}

impl fmt::Display for Untried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for what in self.lacking.iter().chain(&self.refused) {
            writeln!(f, "not tried: {what}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Untried;

    #[test]
    fn what_could_be_tried_fails_and_what_the_machine_refuses_does_not() {
        let mut untried = Untried::default();
        assert_eq!(untried.to_string(), "");
        untried.refused("unit, booted", "no cgroups");
        assert_eq!(untried.all_tried(), Ok(()));
        untried.lacks("image, by skopeo", "skopeo", "skopeo");
        let says = untried.all_tried().expect_err("it can be installed");
        assert!(says.starts_with("1 not tried that could be"), "{says}");
        assert_eq!(
            untried.to_string(),
            "not tried: image, by skopeo: skopeo is not installed (apt-get install skopeo)\n\
             not tried: unit, booted: no cgroups\n"
        );
    }
}
