//! Reading messages of Protocol Buffers without their definition.

/// A field of a message.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Field<'b> {
    Varint(u64),
    Fixed(u64),
    Bytes(&'b [u8]),
}

/// A message: its fields in order.
#[derive(Clone, Debug)]
pub(super) struct Message<'b>(Vec<(u64, Field<'b>)>);

impl<'b> Message<'b> {
    #[track_caller]
    pub(super) fn parse(mut bytes: &'b [u8]) -> Self {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let field = match tag & 7 {
                0 => Field::Varint(varint(&mut bytes)),
                1 => {
                    let (fixed, rest) = bytes.split_first_chunk::<8>().expect("8 bytes");
                    bytes = rest;
                    Field::Fixed(u64::from_le_bytes(*fixed))
                }
                2 => {
                    let length = varint(&mut bytes) as usize;
                    let (value, rest) = bytes.split_at_checked(length).expect("all bytes");
                    bytes = rest;
                    Field::Bytes(value)
                }
                wire => panic!("wire type {wire}"),
            };
            fields.push((tag >> 3, field));
        }
        Self(fields)
    }

    /// All values of a field.
    pub(super) fn all(&self, number: u64) -> impl Iterator<Item = &Field<'b>> {
        let fields = self.0.iter();
        fields.filter_map(move |(known, field)| (*known == number).then_some(field))
    }

    /// The messages of a field.
    pub(super) fn messages(&self, number: u64) -> Vec<Self> {
        let fields = self.all(number).map(|field| match field {
            Field::Bytes(bytes) => Self::parse(bytes),
            other => panic!("field {number} is {other:?}"),
        });
        fields.collect()
    }

    pub(super) fn message(&self, number: u64) -> Option<Self> {
        self.messages(number).pop()
    }

    /// The number in a field.
    pub(super) fn number(&self, number: u64) -> Option<u64> {
        self.all(number).last().map(|field| match field {
            Field::Varint(value) | Field::Fixed(value) => *value,
            Field::Bytes(_) => panic!("field {number} is no number"),
        })
    }

    pub(super) fn text(&self, number: u64) -> Option<String> {
        self.all(number).last().map(|field| match field {
            Field::Bytes(bytes) => String::from_utf8(bytes.to_vec()).expect("UTF-8"),
            other => panic!("field {number} is {other:?}"),
        })
    }

    /// All fields.
    pub(super) fn fields(&self) -> &[(u64, Field<'b>)] {
        &self.0
    }
}

#[track_caller]
fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().expect("a byte");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return value;
        }
    }
    panic!("a varint of more than ten bytes");
}
