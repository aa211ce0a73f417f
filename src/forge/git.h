/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* The git program on one bare repository.
 *
 * Every call is a child that can do little: `coop-git` sets its limits, leaves it this repository
 * (to read, or to write too) and the system's programs by Landlock, takes sockets and everything
 * else that git does not need away by a filter, and becomes git.  Its environment is ours from the
 * first to the last variable: no configuration of the system or of a user, no hooks but ours, no
 * protocol, no fsmonitor, no pager, no external diff.  Nothing that a repository brings is run.
 *
 * These calls block: they are for the forge's threads (forge.h), never for the loop.  Any thread may use
 * a GitRepo. */
typedef struct GitRepo GitRepo;
typedef struct GitHolder GitHolder; /* git-hold.h */

enum {
    GIT_OID_LEN = 40,
    GIT_TIMEOUT_MS = 60 * 1000,
    GIT_OUTPUT_MAX = 8 << 20, /* of a call whose output is collected */
    GIT_ERROR_MAX = 16 << 10, /* of what it says on standard error */
};

typedef struct GitHostSpec {
    const char *launcher; /* path of coop-git */
    /* Folder with the one hook of pushes; NULL: none.  What is in it is all besides git that may be run,
     * with nothing but the repository and the system's libraries to read: no shell, no /proc. */
    const char *hooks;
    /* Somebody's own repository, to read only: its configuration may say what it likes, for nothing
     * that it names can be run.  One of ours that has a setting of which we do not know that it runs
     * nothing is not touched at all. */
    bool foreign;
    GitHolder *holder; /* NULL: nothing gets a group of its own */
} GitHostSpec;

GitRepo *git_repo_new(const GitHostSpec *host, const char *id, const char *path);
GitRepo *git_repo_ref(GitRepo *repo);
void git_repo_unref(GitRepo *repo);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GitRepo, git_repo_unref)
const char *git_repo_id(const GitRepo *repo);
const char *git_repo_path(const GitRepo *repo);

typedef enum GitAccess {
    GIT_READ,
    GIT_WRITE,
    GIT_REMOTE, /* writes, and may use the network: fetches of mirrors and pushes upstream only */
} GitAccess;

typedef struct GitCall {
    GitAccess access;
    const char *const *args; /* behind "git"; refs and paths only behind "--" or "--end-of-options" */
    const char *const *env;  /* "NAME=value", more than ours; NULL: none */
    const void *input;       /* NULL: none */
    size_t input_len;
    size_t output_max; /* 0: GIT_OUTPUT_MAX */
    guint timeout_ms;  /* 0: GIT_TIMEOUT_MS */
    /* Called with output as it comes in the place of collecting it; false ends the child, which
     * then is no error.  NULL: it is collected. */
    bool (*take)(const guint8 *bytes, size_t n, void *ctx);
    /* Lines of standard error as they come (progress); NULL: they are kept for the message. */
    void (*progress)(const char *line, void *ctx);
    void *ctx;
    const gint *cancel; /* atomic; not 0: the child is killed, ERR_CANCELLED; NULL: cannot be */
    /* GIT_REMOTE: what may be spoken, as git names it; NULL: "https" and "http". */
    const char *const *protocols;
    const char *const *settings; /* "name=value" of git's configuration, more than ours; NULL: none */
    /* The same as a file of git's has it, for what neither an environment nor a command line may show: it is
     * read from memory.  NULL: none.  For calls that run to their end (git_run(), git_ask()). */
    const char *config;
    /* In a group with limits of its own, where the keeper can: for what works on much, such as packs.
     * It costs tens of milliseconds.  What is GIT_REMOTE always is. */
    bool heavy;
    guint64 file_max; /* bytes of any file that it writes; 0: as coop-git has it */
} GitCall;

/* True with exit code 0.  Otherwise ERR_INVALID with what git said (cleaned of control characters and
 * of our paths), ERR_TIMEOUT, ERR_LIMIT (output, file_max), ERR_FULL (disk), ERR_CANCELLED or ERR_UNAVAILABLE
 * (cannot be started).  `ret_out` may be NULL; it is NUL-terminated behind its length. */
bool git_run(GitRepo *repo, const GitCall *call, GByteArray **ret_out, GError **error);
/* The same where other exit codes are answers: they are no error. */
bool git_ask(GitRepo *repo, const GitCall *call, int *ret_code, GByteArray **ret_out, GError **error);

/* The common case: collected text without its last newline. */
char *git_text(GitRepo *repo, GitAccess access, const char *const *args, GError **error);
#define GIT_ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* What a call would run, for whoever runs it on the loop (base/spawn.h, with new_session): the command
 * line and the whole environment, both the caller's to g_strfreev().  Of `call` only access, args, env,
 * protocols and settings count.  `wait`: the child goes on when a byte comes on its fd 3, so that it
 * can be put into a group before (box_host_hold()). */
char **git_call_argv(const GitRepo *repo, const GitCall *call, bool wait);
char **git_call_env(const GitRepo *repo, const GitCall *call);

/* ---- names ---- */

/* A branch that may be made here: git's own rules and, beyond them, ASCII letters, digits and
 * "._/-" only, no "-" first, no two alike but for their case in one repository, at most 200 bytes. */
bool git_branch_is_valid(const char *name, GError **error);
bool git_oid_is_valid(const char *oid); /* 40 lower-case hex digits */
extern const char git_oid_zero[];

/* ---- refs ---- */

/* The commit of refs/heads/`branch`; NULL with ERR_NOT_FOUND when there is no such one. */
char *git_branch_oid(GitRepo *repo, const char *branch, GError **error);
/* Moves it only if it is still at `old` (git_oid_zero: is not there): ERR_CONFLICT names both
 * otherwise.  `new` zero removes it. */
bool git_branch_move(GitRepo *repo, const char *branch, const char *old, const char *new, const char *why,
                     GError **error);

/* The same two for a tag too: the full name, below refs/heads/ or refs/tags/.  A tag may be an object of its
 * own. */
char *git_ref_oid(GitRepo *repo, const char *ref, GError **error);
bool git_ref_move(GitRepo *repo, const char *ref, const char *old, const char *new, const char *why,
                  GError **error);

typedef struct GitRefMove {
    const char *ref; /* in full */
    const char *old; /* git_oid_zero: is not there; NULL: whatever it is */
    const char *new; /* git_oid_zero: removes it */
} GitRefMove;
/* All of them or none; ERR_CONFLICT names the first that is not where it should be. */
bool git_refs_move(GitRepo *repo, const GitRefMove *moves, size_t n, const char *why, GError **error);

/* ---- what a killed git leaves ---- */

/* Removes locks of refs and the like, and what pushes had brought so far, older than `age_s`: but only
 * while no git that was started here runs in the repository, which is ERR_CONFLICT.  None starts
 * meanwhile. */
bool git_clear_stale(GitRepo *repo, guint age_s, guint *ret_removed, GError **error);
