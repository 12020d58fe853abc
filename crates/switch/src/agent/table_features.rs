//! Table features (1.3.5 section 7.3.5.5). They cannot be changed, but a request for the current features succeeds.

use super::multipart::answer_rows;
use super::requests::Request;
use crate::Switch;
use std::collections::BTreeSet;
use urtica_pipeline::TableFeatureIds;
use urtica_wire::{ErrorCode, List, MultipartReplyBody, TableFeatures};

impl Switch {
    /// Reports table features. A request that names tables requests exactly these features, and succeeds if they match.
    pub(super) fn handle_table_features(
        &mut self,
        request: Request,
        asked: &List<TableFeatures>,
    ) -> Result<(), ErrorCode> {
        let features = self.shared.pipeline().table_features();
        if !asked.is_empty() {
            self.check_may_write(request)?;
            check(&features, asked)?;
        }
        let empty = MultipartReplyBody::TableFeatures(List::default());
        answer_rows(&mut self.agent, request, empty, features.tables());
        Ok(())
    }

    fn check_may_write(&self, request: Request) -> Result<(), ErrorCode> {
        let session = self.agent.session(request.connection);
        match session.is_some_and(|session| session.controller.is_slave()) {
            true => Err(ErrorCode::BadRequestIsSlave),
            false => Ok(()),
        }
    }
}

/// Checks requested features. Tables that are not named would have to be removed.
fn check(features: &TableFeatureIds, asked: &List<TableFeatures>) -> Result<(), ErrorCode> {
    let tables: Vec<_> = features.tables().collect();
    let mut named = BTreeSet::new();
    for asked in asked {
        let ours = tables.get(usize::from(asked.table_id));
        let ours = ours.filter(|_| named.insert(asked.table_id));
        let ours = ours.ok_or(ErrorCode::TableFeaturesFailedBadTable)?;
        let metadata = |table: &TableFeatures| (table.metadata_match, table.metadata_write);
        if metadata(&asked) != metadata(ours) {
            return Err(ErrorCode::TableFeaturesFailedBadMetadata);
        }
        if asked != *ours {
            return Err(ErrorCode::TableFeaturesFailedEperm);
        }
    }
    match named.len() == tables.len() {
        true => Ok(()),
        false => Err(ErrorCode::TableFeaturesFailedEperm),
    }
}
