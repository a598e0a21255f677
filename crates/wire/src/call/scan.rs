//! One request body as it arrives: in one piece as a rule, in any number of them if need be.
//!
//! Invariant: the answer is the same for every way to cut the body.
//! Not here: the reading itself (`whole`, `json`), what members mean (`head`).

use super::fault::CallFault;
use super::form::{Boundary, FormScanner};
use super::head::{ASKED, CallHead, of_found};
use super::named::NamedScanner;
use super::user::UserScanner;
use super::whole::read_whole;
use crate::dialect::Operation;
use crate::dialect::gemini::Named;
use crate::json::{JsonFault, JsonFaultKind, Scanner, after_blanks, may_be_whole};

/// Reads a request body as it arrives.
///
/// ```
/// let mut scanner = wire::call::CallScanner::new();
/// scanner.push(br#"{"model":"gpt-oss-120b","stre"#)?;
/// scanner.push(br#"am":true,"messages":[]}"#)?;
/// let head = scanner.finish()?;
/// assert_eq!(head.model.as_deref(), Some("gpt-oss-120b"));
/// assert!(head.stream);
/// # Ok::<(), wire::call::CallFault>(())
/// ```
#[derive(Debug, Default)]
pub struct CallScanner {
    progress: Progress,
    /// The call, once it is read: it is large to be moved.
    head: CallHead,
    /// The scan for who is behind the call, where that is asked for.
    user: Option<Box<UserScanner>>,
}

#[derive(Debug, Default)]
enum Progress {
    #[default]
    Start,
    /// The first piece was a whole call.
    Whole,
    Parts(Box<Scanner>),
    /// Of a call whose path names its model.
    Named(Box<NamedScanner>),
    /// Of a form.
    Form(Box<FormScanner>),
    Refused(CallFault),
}

impl CallScanner {
    /// A scanner for one body.
    #[inline]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same that also reads who is behind a call of this operation ([`CallHead::user`]).
    #[cold]
    pub fn with_user(operation: Operation) -> Self {
        Self {
            user: UserScanner::of(operation).map(Box::new),
            ..Self::default()
        }
    }

    /// The same for a call whose path says this.
    #[cold]
    pub fn of_named(named: &Named<'_>) -> Self {
        Self {
            progress: Progress::Named(Box::new(NamedScanner::of(named))),
            ..Self::default()
        }
    }

    /// The same for a form with this boundary.
    #[cold]
    pub fn of_form(boundary: &Boundary) -> Self {
        Self {
            progress: Progress::Form(Box::new(FormScanner::new(boundary))),
            ..Self::default()
        }
    }

    /// Reads the next bytes.
    ///
    /// # Errors
    /// The first byte that makes this no call. After a fault every call returns that fault.
    pub fn push(&mut self, chunk: &[u8]) -> Result<(), CallFault> {
        let pushed = self.push_call(chunk);
        if self.user.is_some() {
            return self.push_user(chunk, pushed);
        }
        pushed
    }

    /// Of two faults in one piece the first counts, as it does where each comes in a piece of its own.
    #[cold]
    fn push_user(&mut self, chunk: &[u8], pushed: Result<(), CallFault>) -> Result<(), CallFault> {
        let scanned = self.user.as_mut().map_or(Ok(()), |user| user.push(chunk));
        match (pushed, scanned) {
            (Err(first), Err(other)) if first.offset <= other.offset => Err(first),
            (Err(fault), Ok(())) => Err(fault),
            (_, Err(fault)) => {
                self.progress = Progress::Refused(fault.clone());
                self.user = None;
                Err(fault)
            }
            (Ok(()), Ok(())) => Ok(()),
        }
    }

    fn push_call(&mut self, chunk: &[u8]) -> Result<(), CallFault> {
        match &mut self.progress {
            Progress::Start if chunk.is_empty() => Ok(()),
            Progress::Start => {
                if may_be_whole(chunk) && read_whole(chunk, &mut self.head).is_some() {
                    self.progress = Progress::Whole;
                    return Ok(());
                }
                let mut scanner = Box::new(Scanner::new(&ASKED).of_request());
                let pushed = scanner.push(chunk);
                self.progress = Progress::Parts(scanner);
                pushed.map_err(CallFault::from)
            }
            Progress::Parts(scanner) => scanner.push(chunk).map_err(CallFault::from),
            Progress::Named(scanner) => scanner.push(chunk),
            Progress::Form(scanner) => {
                let pushed = scanner.push(chunk);
                if let Err(fault) = &pushed {
                    self.progress = Progress::Refused(fault.clone());
                }
                pushed
            }
            Progress::Refused(fault) => Err(fault.clone()),
            Progress::Whole => {
                let blanks = after_blanks(chunk, 0);
                if blanks == chunk.len() {
                    self.head.length += blanks;
                    return Ok(());
                }
                let fault = CallFault::from(JsonFault {
                    offset: self.head.length + blanks,
                    kind: JsonFaultKind::Trailing,
                });
                self.progress = Progress::Refused(fault.clone());
                Err(fault)
            }
        }
    }

    /// Ends the body, and gives what it says. The scanner is a new one then.
    ///
    /// # Errors
    /// An earlier fault, a body that is not whole, or a member that cannot be read.
    #[inline]
    pub fn finish(&mut self) -> Result<&mut CallHead, CallFault> {
        match std::mem::take(&mut self.progress) {
            Progress::Whole => {}
            Progress::Parts(mut scanner) => self.head = of_found(scanner.finish()?)?,
            Progress::Named(scanner) => self.head = scanner.finish()?,
            Progress::Form(scanner) => self.head = scanner.finish()?,
            Progress::Refused(fault) => return Err(fault),
            Progress::Start => self.head = of_found(Scanner::new(&ASKED).finish()?)?,
        }
        if let Some(user) = self.user.take() {
            self.head.user = user.finish()?;
        }
        Ok(&mut self.head)
    }
}

impl CallHead {
    /// Reads a whole body at once.
    pub fn read(body: &[u8]) -> Result<Self, CallFault> {
        let mut scanner = CallScanner::new();
        scanner.push(body)?;
        scanner.finish().map(std::mem::take)
    }
}
