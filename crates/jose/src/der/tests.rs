//! Spellings of DER.

use super::{BIT_STRING, INTEGER, Reader, SEQUENCE};

#[test]
fn an_element_has_one_spelling() {
    let long = [[0x30, 0x81, 0x80].as_slice(), &[0; 0x80]].concat();
    let longer = [[0x30, 0x82, 0x01, 0x00].as_slice(), &[0; 0x100]].concat();
    let rows: [(&[u8], Option<usize>); 14] = [
        (&[0x30, 0], Some(0)),
        (&[0x30, 1, 9], Some(1)),
        (&[0x30, 1, 9, 9], Some(1)),
        (&long, Some(0x80)),
        (&longer, Some(0x100)),
        (&[], None),
        (&[0x30], None),
        (&[0x31, 0], None),
        (&[0x30, 2, 9], None),
        (&[0x30, 0x80, 0, 0], None),
        (&[0x30, 0x81, 1, 9], None),
        (&[0x30, 0x82, 0, 1, 9], None),
        (&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff], None),
        (
            &[0x30, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            None,
        ),
    ];
    for (der, length) in rows {
        let found = Reader::new(der).take(SEQUENCE).map(<[u8]>::len);
        assert_eq!(found, length, "{der:02x?}");
    }
}

#[test]
fn numbers_are_not_negative_and_have_one_spelling() {
    let rows: [(&[u8], Option<&[u8]>); 7] = [
        (&[INTEGER, 1, 5], Some(&[5])),
        (&[INTEGER, 1, 0], Some(&[])),
        (&[INTEGER, 2, 0, 0x80], Some(&[0x80])),
        (&[INTEGER, 2, 0, 0x7f], None),
        (&[INTEGER, 1, 0x80], None),
        (&[INTEGER, 0], None),
        (&[SEQUENCE, 1, 5], None),
    ];
    for (der, expected) in rows {
        assert_eq!(Reader::new(der).number(), expected, "{der:02x?}");
    }
    let bits = |der| Reader::new(der).bits();
    assert_eq!(bits(&[BIT_STRING, 2, 0, 7]), Some([7].as_slice()));
    assert_eq!(bits(&[BIT_STRING, 2, 1, 6]), None);
    assert_eq!(bits(&[BIT_STRING, 0]), None);
}
