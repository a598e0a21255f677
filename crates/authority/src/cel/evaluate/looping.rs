//! Loops over lists and over the names of maps.

use super::super::node::{Fold, Loop};
use super::super::value::{List, Trouble, Value};
use super::{Evaluation, Given};

impl<'e> Evaluation<'e> {
    pub(super) fn run(&mut self, of: &'e Loop) -> Given<'e> {
        let over = self.value(&of.over)?;
        match of.fold {
            Fold::All => self.any(of, &over, false).map(|found| Value::Bool(!found)),
            Fold::Exists => self.any(of, &over, true).map(Value::Bool),
            Fold::ExistsOne => self.one(of, &over).map(Value::Bool),
            Fold::Map | Fold::Filter => self.collect(of, &over),
        }
    }

    /// Whether the condition is `wanted` for an element: then an error for another counts nothing.
    fn any(&mut self, of: &'e Loop, over: &Value<'e>, wanted: bool) -> Given<'e, bool> {
        let mut trouble = None;
        for at in 0..length(over)? {
            match self.with(of, element(over, at)?, |this, of| this.holds(&of.each)) {
                Ok(holds) if holds == wanted => return Ok(true),
                Ok(_) => {}
                Err(Trouble::Steps) => return Err(Trouble::Steps),
                Err(other) => trouble = trouble.or(Some(other)),
            }
        }
        trouble.map_or(Ok(false), Err)
    }

    fn one(&mut self, of: &'e Loop, over: &Value<'e>) -> Given<'e, bool> {
        let mut found = 0;
        for at in 0..length(over)? {
            let holds = self.with(of, element(over, at)?, |this, of| this.holds(&of.each))?;
            found += usize::from(holds);
        }
        Ok(found == 1)
    }

    fn collect(&mut self, of: &'e Loop, over: &Value<'e>) -> Given<'e> {
        let mut values = Vec::new();
        for at in 0..length(over)? {
            let element = element(over, at)?;
            let value = match of.fold {
                Fold::Filter => {
                    let kept = self.with(of, element.clone(), |this, of| this.holds(&of.each))?;
                    kept.then_some(element)
                }
                _ => self.with(of, element, Self::mapped)?,
            };
            values.extend(value);
        }
        Ok(Value::List(List::Made(values.into())))
    }

    fn mapped(&mut self, of: &'e Loop) -> Given<'e, Option<Value<'e>>> {
        if let Some(when) = &of.when
            && !self.holds(when)?
        {
            return Ok(None);
        }
        self.value(&of.each).map(Some)
    }

    /// Does something with the loop's variable set.
    fn with<T>(
        &mut self,
        of: &'e Loop,
        element: Value<'e>,
        act: impl FnOnce(&mut Self, &'e Loop) -> Given<'e, T>,
    ) -> Given<'e, T> {
        self.step(1)?;
        self.bytes(element.copied_bytes())?;
        self.variables.push(element);
        let result = act(self, of);
        self.variables.pop();
        result
    }
}

fn length<'e>(of: &Value<'e>) -> Given<'e, usize> {
    match of {
        Value::List(list) => Ok(list.len()),
        Value::Map(map) => Ok(map.len()),
        other => Err(Trouble::Kind("a list or a map", other.kind())),
    }
}

/// A list's element, a map's name.
fn element<'e>(of: &Value<'e>, at: usize) -> Given<'e> {
    let found = match of {
        Value::List(list) => list.get(at),
        Value::Map(map) => map.name(at),
        _ => None,
    };
    found.ok_or(Trouble::NoIndex)
}
