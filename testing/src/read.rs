//! Reading where the process may be stopped.

use std::io::{ErrorKind, Read, Result};

/// Reads once, as [`Read::read`] does, and again where a stop interrupted that: of a socket with a timeout Linux ends the call when a
/// stopped process goes on (signal(7), *Interruption of system calls*).
///
/// # Errors
/// Those of [`Read::read`], but for [`ErrorKind::Interrupted`].
pub fn read(from: &mut impl Read, buffer: &mut [u8]) -> Result<usize> {
    loop {
        match from.read(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is interrupted twice before it gives what it has.
    struct Stopped(u8);

    impl Read for Stopped {
        fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
            self.0 += 1;
            if self.0 < 3 {
                return Err(ErrorKind::Interrupted.into());
            }
            buffer[0] = self.0;
            Ok(1)
        }
    }

    #[test]
    fn a_stop_is_no_end() {
        let mut buffer = [0; 4];
        assert_eq!(read(&mut Stopped(0), &mut buffer).expect("a byte"), 1);
        assert_eq!(buffer[0], 3);
    }
}
