/** The mask under which fixtures are made: what a test writes for another user can be read, whoever has started the tests. */
process.umask(0o022)
