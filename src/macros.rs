macro_rules! inner_service_accessors {
    () => {
        /// Borrows the wrapped service.
        pub const fn get_ref(&self) -> &S {
            &self.inner
        }

        /// Borrows the wrapped service mutably.
        pub const fn get_mut(&mut self) -> &mut S {
            &mut self.inner
        }

        /// Unwraps the service.
        pub fn into_inner(self) -> S {
            self.inner
        }
    };
}
