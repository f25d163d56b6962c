/* completion.c: one script a shell: verbs first, then a verb's flags, then a flag's valid words. */
#include <string.h>

#include "report/text.h"
#include "settings/help.h"

enum { SCRIPT_BYTES_MAX = 1 << 17 };

static bool takes(enum option_id id, enum verb verb)
{
    return (option_info(id)->verbs & VERB_BIT(verb)) != 0;
}

static bool takes_file(enum option_id id)
{
    const char *metavar = option_info(id)->metavar;
    return metavar && (strncmp(metavar, "FILE", 4) == 0 || strcmp(metavar, "DIR") == 0);
}

static void add_verbs(struct text *text)
{
    for (int verb = 0; verb < VERB_COUNT; verb++)
        text_add(text, "%s%s", verb ? " " : "", verb_info((enum verb)verb)->name);
}

static void add_words(struct text *text, const char *const *words)
{
    for (int i = 0; words[i]; i++)
        text_add(text, "%s%s", i ? " " : "", words[i]);
}

/* A verb's flags with and its first operands, for bash and zsh. */
static void add_verb_words(struct text *text, enum verb verb)
{
    add_words(text, verb_info(verb)->first);
    for (int id = 0; id < OPTION_ID_COUNT; id++)
        if (takes((enum option_id)id, verb))
            text_add(text, " --%s", option_info((enum option_id)id)->name);
}

/* The first of the options of one name stands for all: they differ in valid words nowhere. */
static void add_value_cases(struct text *text, const char *body_start, const char *body_end,
                            const char *file_body)
{
    for (int id = 0; id < OPTION_ID_COUNT; id++) {
        const struct option_info *info = option_info((enum option_id)id);
        if (!info->metavar) continue;
        if (info->letter)
            text_add(text, "    -%c|--%s) ", info->letter, info->name);
        else
            text_add(text, "    --%s) ", info->name);
        if (info->valid[0]) {
            text_add(text, "%s", body_start);
            add_words(text, info->valid);
            text_add(text, "%s ;;\n", body_end);
        } else
            text_add(text, "%s ;;\n", takes_file((enum option_id)id) ? file_body : "return");
    }
}

static void add_bash(struct text *text)
{
    text_add(
        text,
        "# parley completion for bash\n_parley_files() {\n  compopt -o filenames\n"
        "  mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- \"$1\")\n}\n_parley() {\n"
        "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=\n"
        "  COMPREPLY=()\n"
        "  if ((COMP_CWORD == 1)); then\n    COMPREPLY=($(compgen -W '");
    add_verbs(text);
    text_add(text,
             " --help --version' -- \"$cur\"))\n    return\n  fi\n"
             "  if [[ $cur == = ]]; then\n    cur=\n" /* --data=digits are three words, too */
             "  elif [[ $prev == = ]]; then\n    prev=${COMP_WORDS[COMP_CWORD-2]}\n  fi\n"
             "  if [[ $cur == : || $prev == : ]]; then\n" /* idx:FOLDER are three words */
             "    _parley_files \"${cur#:}\"\n    return\n  fi\n"
             "  case ${COMP_WORDS[1]}/$prev in\n    status/--json|bench/--json|model/--json) ;;\n"
             "    *) case $prev in\n");
    add_value_cases(text, "COMPREPLY=($(compgen -W '",
                    "' -- \"$cur\")); [[ ${COMPREPLY-} == *: ]] && compopt -o nospace; return",
                    "_parley_files \"$cur\"; return");
    text_add(text, "    esac ;;\n  esac\n  case ${COMP_WORDS[1]} in\n");
    for (int verb = 0; verb < VERB_COUNT; verb++) {
        text_add(text, "    %s) words='", verb_info((enum verb)verb)->name);
        add_verb_words(text, (enum verb)verb);
        text_add(text, "' ;;\n");
    }
    text_add(text, "  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                   "  [[ ${COMP_WORDS[1]} == model && $COMP_CWORD -gt 2 && $cur != -* ]] &&\n"
                   "    _parley_files \"$cur\"\n"
                   "  return 0\n}\ncomplete -F _parley parley\n");
}

static void add_zsh(struct text *text)
{
    text_add(text, "#compdef parley\n"
                   "_parley_words() {\n  compadd -S '' -- ${(M)@:#*:}\n"
                   "  compadd -- ${@:#*:}\n}\n_parley() {\n  local prev=${words[CURRENT-1]}\n"
                   "  if [[ $PREFIX == --*=* ]]; then\n    prev=${PREFIX%%%%=*}\n"
                   "    compset -P '*='\n  fi\n"
                   "  if compset -P '*:'; then\n    _files\n    return\n  fi\n"
                   "  if ((CURRENT == 2)); then\n    compadd -- ");
    add_verbs(text);
    text_add(text, " --help --version\n    return\n  fi\n"
                   "  case ${words[2]}/$prev in\n    status/--json|bench/--json|model/--json) ;;\n"
                   "    *) case $prev in\n");
    add_value_cases(text, "_parley_words ", "; return", "_files; return");
    text_add(text, "    esac ;;\n  esac\n  case ${words[2]} in\n");
    for (int verb = 0; verb < VERB_COUNT; verb++) {
        text_add(text, "    %s) _parley_words ", verb_info((enum verb)verb)->name);
        add_verb_words(text, (enum verb)verb);
        text_add(text, " ;;\n");
    }
    text_add(text, "  esac\n  [[ ${words[2]} == model ]] && _files\n}\n"
                   "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n  _parley \"$@\"\n"
                   "else\n  compdef _parley parley\nfi\n");
}

/* For fish, in single quotes. */
static void add_quoted(struct text *text, const char *words)
{
    text_add(text, "'");
    for (; *words; words++)
        text_add(text, "%s%c", *words == '\'' || *words == '\\' ? "\\" : "", *words);
    text_add(text, "'");
}

/* To the verbs to which it is that. */
static void add_fish_option(struct text *text, enum option_id id, const char *help)
{
    const struct option_info *info = option_info(id);
    text_add(text, "complete -c parley -n '__fish_seen_subcommand_from");
    for (int verb = 0; verb < VERB_COUNT; verb++)
        if (takes(id, (enum verb)verb) && option_help(id, (enum verb)verb) == help)
            text_add(text, " %s", verb_info((enum verb)verb)->name);
    text_add(text, "' -l %s", info->name);
    if (info->letter) text_add(text, " -s %c", info->letter);
    if (info->metavar) text_add(text, takes_file(id) ? " -r -F" : " -x");
    if (info->valid[0]) {
        text_add(text, " -a '");
        add_words(text, info->valid);
        text_add(text, "'");
    }
    text_add(text, " -d ");
    add_quoted(text, help);
    text_add(text, "\n");
}

static void add_fish_texts(struct text *text, enum option_id id)
{
    const char *base = option_info(id)->help, *told = base;
    add_fish_option(text, id, base);
    for (int verb = 0; verb < VERB_COUNT; verb++) {
        const char *help = option_help(id, (enum verb)verb);
        if (help != base && help != told) add_fish_option(text, id, told = help);
    }
}

static void add_fish(struct text *text)
{
    text_add(text, "# parley completion for fish\ncomplete -c parley -f\n");
    for (int verb = 0; verb < VERB_COUNT; verb++) {
        const struct verb_info *info = verb_info((enum verb)verb);
        text_add(text, "complete -c parley -n __fish_use_subcommand -a %s -d ", info->name);
        add_quoted(text, info->help);
        text_add(text, "\n");
        if (!info->first[0]) continue;
        text_add(text, "complete -c parley -n '__fish_seen_subcommand_from %s' -a '", info->name);
        add_words(text, info->first);
        text_add(text, "'\n");
    }
    text_add(text, "complete -c parley -n '__fish_seen_subcommand_from model' -F\n");
    for (int id = 0; id < OPTION_ID_COUNT; id++)
        add_fish_texts(text, (enum option_id)id);
}

char *help_completion(const char *shell)
{
    struct text text;
    text_init(&text, SCRIPT_BYTES_MAX);
    if (strcmp(shell, "bash") == 0)
        add_bash(&text);
    else if (strcmp(shell, "zsh") == 0)
        add_zsh(&text);
    else if (strcmp(shell, "fish") == 0)
        add_fish(&text);
    else
        return NULL;
    return text_take(&text);
}
