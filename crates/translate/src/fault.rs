//! What cannot be read or said, and where in the client's body it stands.

use wire::filter::Unfit;

/// What is wrong, and the path to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    path: String,
    says: String,
}

pub(crate) type Result<T> = std::result::Result<T, Fault>;

impl Fault {
    pub(crate) fn new(says: impl Into<String>) -> Self {
        Self {
            path: String::new(),
            says: says.into(),
        }
    }

    /// It stands in the member of this name.
    pub(crate) fn within(mut self, name: &str) -> Self {
        let joint = match self.path.as_bytes().first() {
            None | Some(b'[') => "",
            Some(_) => ".",
        };
        self.path.insert_str(0, joint);
        self.path.insert_str(0, name);
        self
    }

    /// Where it stands.
    pub(crate) fn path(self) -> String {
        self.path
    }

    /// It stands in the item of this number.
    pub(crate) fn item(self, nth: usize) -> Self {
        self.within(&format!("[{nth}]"))
    }
}

impl From<Fault> for Unfit {
    fn from(fault: Fault) -> Self {
        let what = match fault.path.is_empty() {
            true => fault.says,
            false => format!("{}: {}", fault.path, fault.says),
        };
        Self::new(what)
    }
}
