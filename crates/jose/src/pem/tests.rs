//! What is one block of PEM.

use super::{PemFault, block};
use crate::fixture::key;

fn found(pem: &[u8]) -> Result<(String, Vec<u8>), PemFault> {
    block(pem).map(|block| (block.label.to_owned(), block.der.to_vec()))
}

#[test]
fn one_block_is_read_whatever_stands_around_it() {
    let pem = std::str::from_utf8(key!("p256.public")).unwrap();
    let expected = found(pem.as_bytes()).unwrap();
    assert_eq!((expected.0.as_str(), expected.1.len()), ("PUBLIC KEY", 91));
    let rows = [
        format!("issuer: a\n{pem}\nand so on"),
        pem.replace('\n', "\r\n"),
        format!("  {}", pem.replace('\n', " \n\t")),
        pem.replace("\n", "").replace("KEY-----M", "KEY-----\nM"),
    ];
    for row in rows {
        assert_eq!(found(row.as_bytes()).as_ref(), Ok(&expected), "{row}");
    }
}

#[test]
fn what_is_no_block_says_why() {
    let pem = std::str::from_utf8(key!("p256.public")).unwrap();
    let rows = [
        (String::new(), PemFault::NoBlock),
        ("-----BEGIN PUBLIC KEY-----".to_owned(), PemFault::NoBlock),
        (pem.replace("END PUBLIC", "END PRIVATE"), PemFault::NoBlock),
        (
            pem.replace("-----END PUBLIC KEY-----", "-----END PUBLIC KEY"),
            PemFault::NoBlock,
        ),
        (pem.replace("-----BEGIN", "BEGIN"), PemFault::NoBlock),
        (pem.repeat(2), PemFault::SeveralBlocks),
        (pem.replacen("MFkw", "MFk!", 1), PemFault::Base64),
        (pem.replacen("MFkw", "MFk", 1), PemFault::Base64),
        (
            pem.replacen("MFkw", "Proc-Type: 4,ENCRYPTED\n\nMFkw", 1),
            PemFault::Base64,
        ),
        (" ".repeat(1024 * 1024 + 1), PemFault::TooLong),
    ];
    for (row, expected) in rows {
        assert_eq!(found(row.as_bytes()), Err(expected), "{row:.80}");
    }
    assert_eq!(found(&[0xff; 9]), Err(PemFault::NoBlock));
}
