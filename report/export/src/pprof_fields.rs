//! Numbers of the fields of pprof's messages (`proto/profile.proto` of pprof's sources).

/// `Profile`.
pub(crate) mod profile {
    pub(crate) const SAMPLE_TYPE: u32 = 1;
    pub(crate) const SAMPLE: u32 = 2;
    pub(crate) const MAPPING: u32 = 3;
    pub(crate) const LOCATION: u32 = 4;
    pub(crate) const FUNCTION: u32 = 5;
    pub(crate) const STRING_TABLE: u32 = 6;
    pub(crate) const TIME_NANOS: u32 = 9;
    pub(crate) const DEFAULT_SAMPLE_TYPE: u32 = 14;
}

/// `ValueType`.
pub(crate) mod value_type {
    pub(crate) const TYPE: u32 = 1;
    pub(crate) const UNIT: u32 = 2;
}

/// `Sample`.
pub(crate) mod sample {
    pub(crate) const LOCATION_ID: u32 = 1;
    pub(crate) const VALUE: u32 = 2;
    pub(crate) const LABEL: u32 = 3;
}

/// `Label`.
pub(crate) mod label {
    pub(crate) const KEY: u32 = 1;
    pub(crate) const STR: u32 = 2;
}

/// `Mapping`.
pub(crate) mod mapping {
    pub(crate) const ID: u32 = 1;
    pub(crate) const FILENAME: u32 = 5;
    pub(crate) const HAS_FUNCTIONS: u32 = 7;
}

/// `Location`.
pub(crate) mod location {
    pub(crate) const ID: u32 = 1;
    pub(crate) const MAPPING_ID: u32 = 2;
    pub(crate) const ADDRESS: u32 = 3;
    pub(crate) const LINE: u32 = 4;
}

/// `Line`.
pub(crate) mod line {
    pub(crate) const FUNCTION_ID: u32 = 1;
}

/// `Function`.
pub(crate) mod function {
    pub(crate) const ID: u32 = 1;
    pub(crate) const NAME: u32 = 2;
    pub(crate) const SYSTEM_NAME: u32 = 3;
}
