/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "base/loop.h"
#include "box/files.h"
#include "forge/check-plan.h"
#include "forge/identity.h"
#include "team/adapter.h"
#include "team/team-private.h"

/* What the files crew*.c share.
 *
 * A shift is one execution under way.  What it does next follows from its row (`state`) and from what is in
 * its box, so after a restart a new one goes on where the old one was. */

enum {
    CREW_BOX_WAIT_MS = 1000, /* until a box is asked for again, doubled */
    CREW_BOX_WAIT_MAX_MS = 32 * 1000,
    CREW_BOX_WAIT_S = 15 * 60, /* in all */
    CREW_FIND_MS = 500,        /* until a run is looked for again whose keeper is away */
    CREW_FIND_S = 300,
    CREW_TERM_MS = 5000, /* between asking and killing */
    CREW_LIFE_EXTRA_S = 3600,
    CREW_CHECK_S = 300, /* of one check that names no time */
    CREW_CHECKS_MAX = 20,
    CREW_PUSH_TRIES = 3,
    CREW_PUSH_WAIT_MS = 1000,
    CREW_COMMITS_MAX = 100,
    CREW_PROBLEM_MAX = 2000, /* bytes */
    CREW_TOOL_MAX = 16 << 20,
    CREW_KEEP_MAX = 512 << 20, /* of one archive */
    CREW_KEEP_S = 300,
};

/* Of agents by hand: such a lease ends with its agent. */
#define CREW_HAND_LEASE "agent:"

typedef struct Shift Shift;

struct Crew {
    LoopTimer timer; /* first: the loop hands back its address; what is kept and over */
    LoopTimer follow_timer;
    guint refs; /* the team's, and each answer that is waited for */
    Team *team; /* not once it is closed */
    Loop *loop;
    bool closed;
    bool begun;           /* what went on before was read */
    bool cleaned;         /* archives without a row are gone: none had been begun */
    gint64 sweep_us;      /* when the timer expires, by the wall; 0: it is not set */
    GHashTable *shifts;   /* execution id -> Shift, one reference each */
    GHashTable *adapters; /* name -> Adapter */
    GHashTable *by_box;   /* box id -> Shift, borrowed */
    EventCursor *cursor;  /* NULL: not begun */
    GBytes *tool;         /* coop-agent; NULL: not read yet */
    GPtrArray *archives;  /* being written, see crew-keep.c */
    GPtrArray *waiting;   /* who waits for an answer of a person, see crew-ask.c */
    CrewEnded ended;
    void *ended_data;
};

typedef enum ShiftPhase {
    SHIFT_LOADING,
    SHIFT_LEASING,
    SHIFT_PREPARING, /* work tree and tools */
    SHIFT_SCANNING,  /* of reviewers: what programs say first */
    SHIFT_FINDING,   /* after a restart: the run */
    SHIFT_WORKING,
    SHIFT_PROVING,
    SHIFT_ENDING, /* its last row is being written */
} ShiftPhase;

/* One check of Coop's. */
typedef struct ShiftCheck {
    char *name, *run, *workdir;
    char **env;
    guint timeout_s;
    bool is_setup;
} ShiftCheck;

struct Shift {
    LoopTimer timer; /* first: the loop hands back its address; what it means follows from the phase */
    guint refs;
    Crew *crew; /* NULL: nobody's any more */
    ShiftPhase phase;
    char *id, *actor;
    Json *row; /* as crew_load() gave it */
    const Adapter *adapter;
    gint64 began_us; /* monotonic: of the phase that waits */
    guint wait_ms;

    Box *box;
    bool leasing;
    bool plain;               /* the role's template is not built: the server's will do */
    void (*told)(void *data); /* of crew_start_told() */
    void *told_data;
    void (*leased)(Shift *shift, void *data); /* whoever stops it waits for the box that may come */
    void *leased_data;
    guint preparing; /* steps under way */
    GError *error;   /* the first of them */
    BoxWrite *write;
    gsize written;
    char *workdir;

    Run *run;
    RunFollower *follower;
    AdapterLines *lines;
    guint64 read, seen; /* bytes of its output; of those, what became events */
    guint asking;       /* questions that are open */
    gint64 asked_us;    /* wall: the last of them */
    bool works_on;      /* it asked a model after that: it does not wait for a person */
    bool called;        /* a model */
    bool timed_out;
    guint repeats; /* of one question to a model, which the door broke off; 0: none */
    RunEnd end;    /* of the program */
    double says;   /* how many events it may tell at once, at `said_us` */
    gint64 said_us;
    guint64 unsaid; /* events that were more than it may tell */

    char *state, *problem; /* what it will end as */
    Json *report;          /* said by the agent; NULL: nothing */
    Json *result;
    Json *scans;       /* of reviewers, as crew-scan.c wrote them; NULL: none */
    GPtrArray *checks; /* ShiftCheck */
    guint check;
    bool skip_checks, checks_failed;
    bool unmeasured; /* the check that runs did not pass while coverage was counted: once more without */
    Run *check_run;
    GString *tail, *err_tail;
    guint push_try;
    char head_oid[GIT_OID_LEN + 1];
    Json *commits;
    guint64 memory_bytes; /* the most that it had when its program ended; 0: not known */
};

static inline const char *
shift_text(const Shift *s, const char *name)
{
    return row_text(s->row, name);
}

/* The brief of the row: what it was told beyond the plan. */
static inline Json *
shift_told(const Shift *s, const char *name)
{
    Json *value = json_object_get(json_object_get(s->row, "brief"), name);

    return json_is_null(value) ? NULL : value;
}

/* Kinds whose changes count; the others look only. */
bool shift_writes(const Shift *s);
bool shift_only_checks(const Shift *s); /* it has no program: Coop looks, and that is all */
Repo *shift_repo(const Shift *s);       /* borrowed; NULL: none, or it is gone */

Shift *shift_ref(Shift *s);
void shift_unref(void *shift);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Shift, shift_unref)
void shift_timer(Shift *s, guint ms);
void shift_has_box(Shift *s, Box *box);
void shift_told_once(Shift *s);
/* Everything but the memory goes; the box stays. */
void shift_let_go(Shift *s);

Crew *crew_ref(Crew *crew);
void crew_unref(Crew *crew);
/* What its row says now is done; the phase decides. */
void shift_begin(Shift *s);
/* The last row is written and all are told. */
void shift_end(Shift *s, const char *state, const char *problem);
void shift_lost(Shift *s, const char *problem);

/* ---- crew-rows.c: each a transaction ---- */

extern const RowTable execution_table;

/* The execution with `task`, `step` and `member` (null: none), and how many questions it `asks`. */
void crew_load(Crew *crew, const char *execution_id, TeamJsonFunc done, void *data);
/* {"ids": of those that have not ended} */
void crew_list_open(Crew *crew, TeamJsonFunc done, void *data);

typedef struct CrewMove {
    const char *id, *state;       /* what it is from now on */
    const char *box_id, *workdir; /* NULL: as it was */
    gint64 run;                   /* 0: as it was */
    gint64 seen;
    const char *actor;
    Json *report; /* NULL: as it was */
    Json *joined; /* data of agent.joined; NULL: no event */
} CrewMove;
/* {"state"}: what it has now; another when it has ended meanwhile. */
void crew_move(Crew *crew, const CrewMove *move, TeamJsonFunc done, void *data);

typedef struct CrewEnd {
    const char *id, *state, *problem, *actor;
    Json *result, *report, *commits;
    gint64 memory_bytes; /* the most that its box had; 0: not known */
} CrewEnd;
/* {"state", "task_id"} */
void crew_end(Crew *crew, const CrewEnd *end, TeamJsonFunc done, void *data);

/* ---- crew-box.c ---- */

void shift_lease(Shift *s);
void shift_box_timer(Shift *s); /* the timer of LEASING */
void shift_renew(Shift *s, gint64 life_ms);

/* ---- crew-prepare.c ---- */

void shift_prepare(Shift *s);
void shift_prepare_stop(Shift *s);

/* ---- crew-scan.c ---- */

bool shift_wants_scan(const Shift *s);
Json *shift_scans(const Shift *s); /* borrowed; NULL: nothing was scanned */
void shift_scan(Shift *s);         /* goes on with shift_work() */

/* ---- crew-words.c ---- */

bool shift_has_identity(const Shift *s);
char *shift_git_name(const Shift *s);
char *shift_git_email(const Shift *s);
const char *shift_template(const Shift *s);   /* borrowed; NULL: the server's */
bool shift_template_is_usual(const Shift *s); /* nobody asked for it: the role has it */
guint shift_seconds(const Shift *s);
guint shift_turns(const Shift *s);
/* What the squad says of this member alone; NULL: nobody is. */
Json *shift_config(const Shift *s);
guint shift_at_most(const Shift *s, const char *name, guint most);
const Role *shift_role(const Shift *s); /* NULL: none of that name */
char *shift_system(const Shift *s);     /* the system prompt: of the role, and of the member */
char *shift_model(const Shift *s);      /* "provider/model" */
const char *shift_dialect(const Shift *s);

/* What an adapter's placeholders stand for. */
typedef struct ShiftWords {
    AdapterWords words;
    char *prompt, *system, *home, *model;
} ShiftWords;
ShiftWords *shift_words_new(const Shift *s); /* not longer than the shift */
void shift_words_free(ShiftWords *words);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ShiftWords, shift_words_free)

/* ---- crew-work.c ---- */

void shift_work(Shift *s); /* the box has everything: the program is started, once */
void shift_find(Shift *s); /* after a restart: the run that the row names */
void shift_watch(Shift *s, Run *run);
void shift_work_timer(Shift *s);
/* A question was asked, or answered. */
void shift_asks(Shift *s, bool asks);
void shift_works_on(Shift *s);
/* The door refuses what it asks, because it goes round in circles. */
void shift_loops(Shift *s, guint repeats);

/* ---- crew-watch.c ---- */

/* The program has ended, as s->end says. */
void shift_ran(Shift *s);

/* ---- crew-prove.c ---- */

void shift_prove(Shift *s);
void shift_prove_timer(Shift *s);

/* ---- crew-check.c ---- */

void shift_check_free(void *check);
/* Those of the brief; NULL: it names none. */
GPtrArray *shift_told_checks(const Shift *s);
GPtrArray *shift_planned_checks(const CheckPlan *plan);
/* Runs s->checks and ends in shift_proved(). */
void shift_check_all(Shift *s);
void shift_proved(Shift *s);
void shift_kept(Shift *s, const char *path, const GError *error); /* one of them is NULL */
/* Lets what is there go. */
void shift_check_stop(Shift *s);

/* ---- crew-tests.c ---- */

/* [{"name", "run"}] of its repository, which it has. */
void shift_repo_tests(Shift *s, TeamJsonFunc done, void *data);

/* ---- crew-report.c ---- */

/* The execution that lives in this box; NULL with an error: none does. */
Shift *crew_in_box(Crew *crew, const char *box_id, GError **error);
/* How many of so many events it may tell now. */
size_t shift_may_say(Shift *s, size_t n);
/* Events {"kind", …} that an agent, or its adapter, tells; copied. */
void shift_tell(Shift *s, Json *events, TeamJsonFunc done, void *data);

/* ---- crew-ask.c ---- */

/* A question of this execution has its answer. */
void crew_answered(Crew *crew, const char *execution_id);
void crew_wait_end(Crew *crew);

/* ---- crew-follow.c ---- */

/* Follows the events that concern agents: their first call of a model, answers of people. */
void crew_follow(Crew *crew);
void crew_follow_end(Crew *crew);

/* ---- crew-stop.c ---- */

/* Nobody else ends the box of an agent by hand; `end` has its state. */
void crew_release_own(Crew *crew, const Json *row, const Json *end);
/* Boxes of agents by hand whose end was written before the server's, and that were there still. */
void crew_end_leftovers(Crew *crew);

/* ---- crew-keep.c, crew-sweep.c ---- */

/* The files of one without a repository; ends in shift_kept(). */
void shift_keep_files(Shift *s);
void crew_sweep(Crew *crew); /* what is kept and over; ends in crew_swept() */
void crew_keep_end(Crew *crew);
/* Not later than that. */
void crew_sweep_by(Crew *crew, gint64 at_us);
void crew_swept(Crew *crew); /* the first time agents are taken up, before any archive is begun */
