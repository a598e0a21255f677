//! What is made of what the document says, and what is kept.
