//! Sums and conversions. Whole numbers never wrap; what does not fit is an error.

use std::borrow::Cow;

use super::super::node::{Conversion, Node, Sum};
use super::super::value::{Trouble, Value};
use super::{Evaluation, Given};

impl<'e> Evaluation<'e> {
    pub(super) fn sum(&mut self, sum: Sum, [a, b]: &'e [Node; 2]) -> Given<'e> {
        match (self.value(a)?, self.value(b)?) {
            (Value::Int(a), Value::Int(b)) => whole(sum, a, b).map(Value::Int),
            (Value::Float(a), Value::Float(b)) => float(sum, a, b).map(Value::Float),
            (Value::Text(a), Value::Text(b)) if sum == Sum::Add => {
                self.bytes(a.len().saturating_add(b.len()))?;
                let mut text = a.into_owned();
                text.push_str(&b);
                Ok(Value::Text(Cow::Owned(text)))
            }
            (Value::Large(_), Value::Int(_) | Value::Large(_))
            | (Value::Int(_), Value::Large(_)) => Err(Trouble::Overflow),
            (a, b) => Err(Trouble::Pair("summed", a.kind(), b.kind())),
        }
    }

    pub(super) fn negative(&mut self, of: &'e Node) -> Given<'e> {
        match self.value(of)? {
            Value::Int(of) => of.checked_neg().map(Value::Int).ok_or(Trouble::Overflow),
            Value::Large(_) => Err(Trouble::Overflow),
            Value::Float(of) => Ok(Value::Float(-of)),
            other => Err(Trouble::Kind("a number", other.kind())),
        }
    }
}

fn whole<'e>(sum: Sum, a: i64, b: i64) -> Given<'e, i64> {
    if b == 0 && matches!(sum, Sum::Divide | Sum::Remainder) {
        return Err(Trouble::DivisionByZero);
    }
    let result = match sum {
        Sum::Add => a.checked_add(b),
        Sum::Subtract => a.checked_sub(b),
        Sum::Multiply => a.checked_mul(b),
        Sum::Divide => a.checked_div(b),
        Sum::Remainder => a.checked_rem(b),
    };
    result.ok_or(Trouble::Overflow)
}

/// CEL has no remainder of these.
fn float<'e>(sum: Sum, a: f64, b: f64) -> Given<'e, f64> {
    Ok(match sum {
        Sum::Add => a + b,
        Sum::Subtract => a - b,
        Sum::Multiply => a * b,
        Sum::Divide => a / b,
        Sum::Remainder => return Err(Trouble::Kind("a whole number", "a number")),
    })
}

pub(super) fn convert<'e>(to: Conversion, value: Value<'e>) -> Given<'e> {
    match to {
        Conversion::Int => int(&value).map(Value::Int),
        Conversion::Float => double(&value).map(Value::Float),
        Conversion::Text => match value {
            Value::Text(text) => Ok(Value::Text(text)),
            Value::Int(value) => Ok(Value::Text(Cow::Owned(value.to_string()))),
            Value::Large(value) => Ok(Value::Text(Cow::Owned(value.to_string()))),
            Value::Bool(value) => Ok(Value::Text(Cow::Borrowed(if value {
                "true"
            } else {
                "false"
            }))),
            Value::Address(value) => Ok(Value::Text(Cow::Owned(value.to_string()))),
            _ => Err(Trouble::Conversion("a text")),
        },
    }
}

/// A time becomes its seconds since the epoch; of a number, what stands behind the point is dropped.
fn int<'e>(value: &Value<'e>) -> Given<'e, i64> {
    match value {
        Value::Int(value) => Ok(*value),
        Value::Time(unix_ms) => Ok(unix_ms.div_euclid(1000)),
        Value::Text(text) => text
            .parse()
            .map_err(|_| Trouble::Conversion("a whole number")),
        Value::Float(value) => {
            let fits = value.is_finite() && value.abs() < 9_223_372_036_854_775_808.0;
            #[expect(
                clippy::cast_possible_truncation,
                reason = "the fraction is to go, and the rest fits"
            )]
            let whole = *value as i64;
            if fits {
                Ok(whole)
            } else {
                Err(Trouble::Overflow)
            }
        }
        Value::Large(_) => Err(Trouble::Overflow),
        _ => Err(Trouble::Conversion("a whole number")),
    }
}

fn double<'e>(value: &Value<'e>) -> Given<'e, f64> {
    match value {
        Value::Float(value) => Ok(*value),
        #[expect(clippy::cast_precision_loss, reason = "what double(…) says")]
        Value::Int(value) => Ok(*value as f64),
        #[expect(clippy::cast_precision_loss, reason = "what double(…) says")]
        Value::Large(value) => Ok(*value as f64),
        Value::Text(text) => text.parse().map_err(|_| Trouble::Conversion("a number")),
        _ => Err(Trouble::Conversion("a number")),
    }
}
