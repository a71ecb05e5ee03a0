//! Small scopes whole: not a sample, but every case that fits.

mod arguments;
mod names;
mod results;
