//! A TOML document read member by member, so that every fault is told at once, each with its path.
//!
//! Invariant: a member that nobody asked for is a fault.
//! Not here: what members mean (`scenario`).

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::str::FromStr;
use std::time::Duration;

use toml::{Table, Value};

/// What was found so far, shared by all tables of a document.
#[derive(Debug, Clone, Default)]
pub(super) struct Faults(Rc<RefCell<Vec<String>>>);

/// A table, and where it stands.
#[derive(Debug)]
pub(super) struct Members {
    path: String,
    table: Table,
    asked: RefCell<BTreeSet<String>>,
    faults: Faults,
}

impl Faults {
    /// Adds one: `PATH: SAYS`.
    pub(super) fn add(&self, path: &str, says: impl std::fmt::Display) {
        self.0.borrow_mut().push(format!("{path}: {says}"));
    }

    pub(super) fn all(&self) -> Vec<String> {
        self.0.borrow().clone()
    }
}

impl Members {
    /// The whole of a document.
    pub(super) fn new(table: Table, faults: &Faults) -> Self {
        Self::at(String::new(), table, faults)
    }

    fn at(path: String, table: Table, faults: &Faults) -> Self {
        Self {
            path,
            table,
            asked: RefCell::default(),
            faults: faults.clone(),
        }
    }

    /// The path of a member.
    pub(super) fn path(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    pub(super) fn fault(&self, name: &str, says: impl std::fmt::Display) {
        self.faults.add(&self.path(name), says);
    }

    fn value(&self, name: &str) -> Option<Value> {
        self.asked.borrow_mut().insert(name.to_owned());
        self.table.get(name).cloned()
    }

    /// A text.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        match self.value(name)? {
            Value::String(text) if !text.is_empty() => Some(text),
            other => {
                self.fault(name, format!("has to be a text, not {}", kind(&other)));
                None
            }
        }
    }

    /// A text that has a meaning of its own, such as a query.
    pub(super) fn parsed<T: FromStr>(&self, name: &str) -> Option<T>
    where
        T::Err: std::fmt::Display,
    {
        let text = self.text(name)?;
        match text.parse() {
            Ok(parsed) => Some(parsed),
            Err(error) => {
                self.fault(name, error);
                None
            }
        }
    }

    /// A time such as `60s`, `5m` or `3h`.
    pub(super) fn time(&self, name: &str) -> Option<Duration> {
        let text = self.text(name)?;
        let seconds = experiment::arrivals::time(&text);
        let time = seconds.and_then(|s| Duration::try_from_secs_f64(s).map_err(|e| e.to_string()));
        match time {
            Ok(time) => Some(time),
            Err(says) => {
                self.fault(name, says);
                None
            }
        }
    }

    /// A number, whole or not.
    pub(super) fn number(&self, name: &str) -> Option<f64> {
        match self.value(name)? {
            #[expect(clippy::cast_precision_loss, reason = "what a person writes")]
            Value::Integer(number) => Some(number as f64),
            Value::Float(number) if number.is_finite() => Some(number),
            other => {
                self.fault(name, format!("has to be a number, not {}", kind(&other)));
                None
            }
        }
    }

    /// A whole number.
    pub(super) fn count<T: TryFrom<i64>>(&self, name: &str) -> Option<T> {
        let value = self.value(name)?;
        let count = value.as_integer().and_then(|count| T::try_from(count).ok());
        if count.is_none() {
            let says = format!("has to be a whole number in bounds, not {value}");
            self.fault(name, says);
        }
        count
    }

    /// Yes or no.
    pub(super) fn flag(&self, name: &str) -> Option<bool> {
        let value = self.value(name)?;
        let flag = value.as_bool();
        if flag.is_none() {
            self.fault(name, format!("has to be true or false, not {value}"));
        }
        flag
    }

    /// Texts.
    pub(super) fn texts(&self, name: &str) -> Vec<String> {
        let Some(value) = self.value(name) else {
            return Vec::new();
        };
        let list = value.as_array().cloned().unwrap_or_default();
        let texts: Vec<String> = list
            .iter()
            .filter_map(|text| text.as_str().map(str::to_owned))
            .collect();
        if !value.is_array() || texts.len() != list.len() {
            self.fault(name, "has to be a list of texts");
        }
        texts
    }

    /// Names and texts.
    pub(super) fn pairs(&self, name: &str) -> Vec<(String, String)> {
        let Some(value) = self.value(name) else {
            return Vec::new();
        };
        let Some(table) = value.as_table() else {
            self.fault(name, "has to be a table of texts");
            return Vec::new();
        };
        let pairs = table.iter().filter_map(|(key, value)| {
            let text = value.as_str();
            if text.is_none() {
                self.fault(&format!("{name}.{key}"), "has to be a text");
            }
            Some((key.clone(), text?.to_owned()))
        });
        pairs.collect()
    }

    /// A table below, if there is one.
    pub(super) fn table(&self, name: &str) -> Option<Self> {
        match self.value(name)? {
            Value::Table(table) => Some(Self::at(self.path(name), table, &self.faults)),
            other => {
                self.fault(name, format!("has to be a table, not {}", kind(&other)));
                None
            }
        }
    }

    /// Tables below, `[[name]]`.
    pub(super) fn tables(&self, name: &str) -> Vec<Self> {
        let Some(value) = self.value(name) else {
            return Vec::new();
        };
        let Value::Array(list) = value else {
            self.fault(name, format!("is written as [[{}]]", self.path(name)));
            return Vec::new();
        };
        let tables = list.into_iter().enumerate().filter_map(|(at, value)| {
            let path = format!("{}[{at}]", self.path(name));
            match value {
                Value::Table(table) => Some(Self::at(path, table, &self.faults)),
                other => {
                    let says = format!("has to be a table, not {}", kind(&other));
                    self.faults.add(&path, says);
                    None
                }
            }
        });
        tables.collect()
    }

    /// A member that has to be there; the fault is told where it is not.
    pub(super) fn needed<T>(&self, name: &str, value: Option<T>) -> Option<T> {
        if value.is_none() && !self.table.contains_key(name) {
            self.fault(name, "has to be there");
        }
        value
    }

    /// Ends the reading: what nobody asked for is unknown.
    pub(super) fn end(self) {
        let asked = self.asked.borrow();
        for name in self.table.keys().filter(|name| !asked.contains(*name)) {
            let known: Vec<&str> = asked.iter().map(String::as_str).collect();
            self.fault(
                name,
                format!("is unknown here; there are {}", known.join(", ")),
            );
        }
    }
}

fn kind(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".into(),
        Value::Table(_) => "a table".into(),
        Value::String(text) if text.is_empty() => "an empty one".into(),
        other => other.to_string(),
    }
}
