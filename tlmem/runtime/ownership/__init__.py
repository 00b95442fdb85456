"""Who owns a tensor and until when: scopes, frames, structs, pools, parameters, named holders."""
