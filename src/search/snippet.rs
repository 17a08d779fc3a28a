//! The best window of a passage, with what matched highlighted.
