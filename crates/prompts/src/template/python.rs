//! What Jinja takes from Python and this engine has in another way or not at all: tests, filters and functions.
//!
//! Invariant: what is not known fails; it never gives another text than Python's.
//! Not here: methods of text (`methods`), how values are printed (`python_text`), arguments of a template (`arguments`).

mod filters;
mod methods;
mod text;

use minijinja::value::{ObjectRepr, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Value};

pub(super) use text::is_space;

pub(super) fn add(environment: &mut Environment<'static>) {
    environment.set_unknown_method_callback(methods::call);
    environment.add_test("iterable", is_collection);
    environment.add_test("sequence", is_collection);
    environment.add_test("callable", is_callable);
    filters::add(environment);
}

/// Text, lists and dicts, and what is undefined; none and numbers are not. A slice or what `map` gives is a list too:
/// Python's generators, which are no sequences, are not told apart.
fn is_collection(value: &Value) -> bool {
    matches!(
        value.kind(),
        ValueKind::Undefined
            | ValueKind::String
            | ValueKind::Seq
            | ValueKind::Map
            | ValueKind::Iterable
    )
}

/// Jinja's undefined value has a method that says it cannot be called.
fn is_callable(value: &Value) -> bool {
    let is_plain = |value: &Value| {
        value
            .as_object()
            .is_some_and(|object| object.repr() == ObjectRepr::Plain)
    };
    value.is_undefined() || is_plain(value)
}

/// Something that Python would not do, in a few words.
fn fault(says: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, says.into())
}

/// Arguments by place and by name, as Python binds them.
struct Bound {
    values: Vec<Option<Value>>,
}

impl Bound {
    /// # Errors
    /// When there are more arguments than names, or one by another name.
    fn new<const N: usize>(args: &[Value], names: [&str; N]) -> Result<Self, Error> {
        let (places, named): (&[Value], minijinja::value::Kwargs) =
            minijinja::value::from_args(args)?;
        if places.len() > N {
            return Err(Error::from(ErrorKind::TooManyArguments));
        }
        let mut values: Vec<_> = places.iter().cloned().map(Some).collect();
        for name in names.into_iter().skip(places.len()) {
            values.push(named.get(name)?);
        }
        named.assert_all_used()?;
        Ok(Self { values })
    }

    fn get(&self, at: usize) -> Option<&Value> {
        self.values.get(at)?.as_ref()
    }

    /// What was given and is not none.
    fn some(&self, at: usize) -> Option<&Value> {
        self.get(at).filter(|value| !value.is_none())
    }

    fn text(&self, at: usize) -> Result<Option<&str>, Error> {
        let text = |value| text_of(value).ok_or_else(|| fault("an argument is no text"));
        self.some(at).map(text).transpose()
    }

    fn whole(&self, at: usize) -> Result<Option<i64>, Error> {
        let whole = |value: &Value| {
            value
                .as_i64()
                .ok_or_else(|| fault("an argument is no number"))
        };
        self.some(at).map(whole).transpose()
    }

    fn is_true(&self, at: usize) -> bool {
        self.get(at).is_some_and(Value::is_true)
    }
}

fn text_of(value: &Value) -> Option<&str> {
    value.as_str()
}
