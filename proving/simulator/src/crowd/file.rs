//! The file form of traffic.
//!
//! Invariant: what makes no sense is refused with its line and its member. The profiles of the published saturation
//! test come with the program, as `paper`.
//! Not here: reading files (`prove`).

use experiment::arrivals::{Process, Scope, Spec, TraceError};
use serde::Deserialize;
use toml::Spanned;

use super::traffic::{Answers, Comes, Length, Profile, Talk, Traffic};

/// Traffic that comes with the program.
const EMBEDDED: &[(&str, &str)] = &[("paper", include_str!("../../workloads/paper.toml"))];

/// A file of traffic that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {says}")]
pub struct FileError {
    /// The file and the line, and the member where there is one.
    place: String,
    says: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    profile: Vec<Spanned<FileProfile>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileProfile {
    name: String,
    weight: Option<f64>,
    arrivals: Option<Spec>,
    think: Spec,
    #[serde(default)]
    scope: Scope,
    #[serde(default)]
    shared_tokens: u32,
    first_tokens: FileLength,
    turn_tokens: Option<FileLength>,
    output_tokens: FileLength,
    turns: Option<FileLength>,
    context_tokens: Option<u32>,
    #[serde(default)]
    answers: FileAnswers,
    conversations: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileLength {
    mean: f64,
    #[serde(default)]
    cv: f64,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FileAnswers {
    #[default]
    Own,
    Recorded,
}

/// A member and what is wrong with it.
type Fault = (&'static str, String);

/// What went wrong with a trace's file.
struct Unread(String);

impl From<TraceError> for Unread {
    fn from(error: TraceError) -> Self {
        Self(error.to_string())
    }
}

impl Traffic {
    /// Names of the traffic that comes with the program.
    #[must_use]
    pub fn names() -> Vec<&'static str> {
        EMBEDDED.iter().map(|&(name, _)| name).collect()
    }

    /// The traffic of that name that comes with the program.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let &(_, text) = EMBEDDED.iter().find(|&&(known, _)| known == name)?;
        let none = |_: &str| Err("traffic that comes with the program has no files".into());
        Some(Self::parse(text, name, none).expect("a test reads all of them"))
    }

    /// Reads a file of traffic; `origin` is what errors call it, and `read` gives the text of a trace that it names.
    ///
    /// # Errors
    /// Says which line and member has a fault.
    pub fn parse(
        text: &str,
        origin: &str,
        read: impl Fn(&str) -> Result<String, String>,
    ) -> Result<Self, FileError> {
        let line = |at: usize| 1 + text[..at.min(text.len())].matches('\n').count();
        let file: File = toml::from_str(text).map_err(|error| FileError {
            place: format!(
                "{origin}:{}",
                line(error.span().map_or(0, |span| span.start))
            ),
            says: error.message().to_owned(),
        })?;
        let lower = |(i, profile): (usize, Spanned<FileProfile>)| {
            let line = line(profile.span().start);
            let lowered = profile.into_inner().lower(&read);
            lowered.map_err(|(member, says)| FileError {
                place: format!("{origin}:{line}: profile[{i}].{member}"),
                says,
            })
        };
        let profiles = file.profile.into_iter().enumerate().map(lower);
        Ok(Self {
            profiles: profiles.collect::<Result<_, _>>()?,
        })
    }
}

impl FileProfile {
    fn lower(self, read: impl Fn(&str) -> Result<String, String>) -> Result<Profile, Fault> {
        let process = |member: &'static str, spec: &Spec| -> Result<Process, Fault> {
            spec.resolve(|file| read(file).map_err(Unread))
                .map_err(|Unread(says)| (member, says))
        };
        let comes = match (self.weight, &self.arrivals) {
            (Some(weight), None) => Comes::Users { weight },
            (None, Some(arrivals)) => Comes::Sessions {
                arrivals: process("arrivals", arrivals)?,
            },
            (None, None) => Comes::Users { weight: 1.0 },
            (Some(_), Some(_)) => {
                let says = "is a share of users, whom a profile with arrivals has not";
                return Err(("weight", says.into()));
            }
        };
        let turns = self.turns.map_or(Length::fixed(1.0), Length::from);
        if turns.mean > 1.0 && self.turn_tokens.is_none() {
            let says = "has to be there where a conversation has more than one turn";
            return Err(("turn_tokens", says.into()));
        }
        let profile = Profile {
            name: self.name,
            comes,
            think: process("think", &self.think)?,
            scope: self.scope,
            talk: Talk {
                shared_tokens: self.shared_tokens,
                first_tokens: self.first_tokens.into(),
                turn_tokens: self.turn_tokens.map_or(Length::fixed(1.0), Length::from),
                output_tokens: self.output_tokens.into(),
                turns,
                context_tokens: self.context_tokens,
                answers: match self.answers {
                    FileAnswers::Own => Answers::Own,
                    FileAnswers::Recorded => Answers::Recorded,
                },
                conversations: self.conversations,
            },
        };
        match profile.fault() {
            Some((member, says)) => Err((member, says.into())),
            None => Ok(profile),
        }
    }
}

impl From<FileLength> for Length {
    fn from(length: FileLength) -> Self {
        Self {
            mean: length.mean,
            cv: length.cv,
        }
    }
}

#[cfg(test)]
mod tests;
