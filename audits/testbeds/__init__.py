"""Problems that the catalog's entries and building blocks are audited on."""
