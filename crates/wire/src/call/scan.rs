//! One request body as it arrives: in one piece as a rule, in any number of them if need be.
//!
//! Invariant: the answer is the same for every way to cut the body.
//! Not here: the reading itself (`whole`, `json`), what members mean (`head`).

use super::fault::CallFault;
use super::head::{ASKED, CallHead, of_found};
use super::whole::read_whole;
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
pub struct CallScanner(Progress);

#[derive(Debug, Default)]
enum Progress {
    #[default]
    Start,
    /// The first piece was a whole call.
    Whole(CallHead),
    Parts(Box<Scanner>),
    Refused(CallFault),
}

impl CallScanner {
    /// A scanner for one body.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the next bytes.
    ///
    /// # Errors
    /// The first byte that makes this no call. After a fault every call returns that fault.
    pub fn push(&mut self, chunk: &[u8]) -> Result<(), CallFault> {
        match &mut self.0 {
            Progress::Start if chunk.is_empty() => Ok(()),
            Progress::Start => {
                if may_be_whole(chunk)
                    && let Some(head) = read_whole(chunk)
                {
                    self.0 = Progress::Whole(head);
                    return Ok(());
                }
                let mut scanner = Box::new(Scanner::new(&ASKED));
                let pushed = scanner.push(chunk);
                self.0 = Progress::Parts(scanner);
                pushed.map_err(CallFault::from)
            }
            Progress::Parts(scanner) => scanner.push(chunk).map_err(CallFault::from),
            Progress::Refused(fault) => Err(fault.clone()),
            Progress::Whole(head) => {
                let blanks = after_blanks(chunk, 0);
                if blanks == chunk.len() {
                    head.length += blanks;
                    return Ok(());
                }
                let fault = CallFault::from(JsonFault {
                    offset: head.length + blanks,
                    kind: JsonFaultKind::Trailing,
                });
                self.0 = Progress::Refused(fault.clone());
                Err(fault)
            }
        }
    }

    /// Ends the body. The scanner is a new one then.
    ///
    /// # Errors
    /// An earlier fault, a body that is not whole, or a member that cannot be read.
    pub fn finish(&mut self) -> Result<CallHead, CallFault> {
        match std::mem::take(&mut self.0) {
            Progress::Whole(head) => Ok(head),
            Progress::Parts(mut scanner) => of_found(scanner.finish()?),
            Progress::Refused(fault) => Err(fault),
            Progress::Start => of_found(Scanner::new(&ASKED).finish()?),
        }
    }
}

impl CallHead {
    /// Reads a whole body at once.
    pub fn read(body: &[u8]) -> Result<Self, CallFault> {
        let mut scanner = CallScanner::new();
        scanner.push(body)?;
        scanner.finish()
    }
}
