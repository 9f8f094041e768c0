# Interactive shells only: a script's shell gets no surprises.
case $- in *i*) ;; *) return ;; esac
HISTCONTROL=ignoreboth HISTSIZE=10000 HISTFILESIZE=20000
shopt -s histappend checkwinsize globstar
PS1='\[\e[1;32m\]\h\[\e[0m\]:\[\e[1;34m\]\w\[\e[0m\]\$ '
alias ls='ls --color=auto' ll='ls -lh' la='ls -lhA' grep='grep --color=auto'
[ -r /usr/share/bash-completion/bash_completion ] && . /usr/share/bash-completion/bash_completion
