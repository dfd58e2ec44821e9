//! What a running kernel says (tracefs), as the same records as the lab gives.
