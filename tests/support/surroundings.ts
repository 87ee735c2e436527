/**
 * What whoever starts the tests has set is not the tests' business: options of ours, the repository that a git hook is about, and
 * the mask under which fixtures for other users are made. What the program does with such things is tested with its own words.
 */
process.umask(0o022)
for (const name of Object.keys(process.env)) if (/^(?:GIT|LLM_DO_EXEC)_/.test(name)) delete process.env[name]
