/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of the command. Each gets its own argv, argv[0] being the verb,
 * and returns the exit code of the process. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#define EXIT_OK 0
#define EXIT_FAILED 1   /* what was asked for could not be done */
#define EXIT_USAGE 2    /* the command line makes no sense */
#define EXIT_CANNOT 125 /* `record -- CMD`: our own failure, not the command's */

int verb_run(int argc, char **argv);
int verb_record(int argc, char **argv);
int verb_validate(int argc, char **argv);
int verb_targets(int argc, char **argv);
int verb_plugins(int argc, char **argv);
int verb_inspect(int argc, char **argv);
int verb_doctor(int argc, char **argv);
int verb_debuginfo(int argc, char **argv);
int verb_push(int argc, char **argv);
int verb_report(int argc, char **argv);
/* Not for people: it is not in the help. */
int verb_worker(int argc, char **argv);

#endif
