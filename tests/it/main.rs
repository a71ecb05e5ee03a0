mod argument_vectors;
mod composition;
mod layers;
mod name_vectors;
mod orders;
mod result_vectors;
mod stub;
mod support;
