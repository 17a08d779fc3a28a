//! One live connection to a server, and what can be asked over it.

use crate::model::Snapshot;
use crate::source::SourceError;

/// A live session; cheap to clone, closed when the last clone is dropped or it is told to.
#[derive(Clone)]
pub struct Session {}

impl Session {
    /// `resources/read`, within the read time limit and the limits of content.
    pub async fn read(&self, uri: &str) -> Result<Snapshot, SourceError> {
        Err(SourceError::Disconnected { reason: format!("nothing to read {uri} from") })
    }
}
