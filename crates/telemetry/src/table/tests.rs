//! Positions stay.

use super::Table;

#[test]
fn a_key_keeps_its_place() {
    let mut table = Table::<u64>::default();
    let (a, b) = (table.place(7), table.place(9));
    *table.at(b) += 2;
    assert_eq!(table.place(7), a);
    assert_eq!(table.find(9), Some(b));
    assert_eq!(table.find(8), None);
    assert_eq!(table.rows().collect::<Vec<_>>(), [(7, &0), (9, &2)]);
}
