/* Notes for nops that sys/sdt.h of Debian 12 does not write yet. PROVIDER is to be defined. */
#define NOP5 ".byte 0x0f, 0x1f, 0x44, 0, 0\n"

/* A note for the instruction that follows. */
#define NOTE_BEFORE(name, arguments, nops) \
  "990: " nops \
  ".pushsection .note.stapsdt,\"?\",\"note\"\n" \
  ".balign 4\n" \
  ".4byte 992f-991f, 994f-993f, 3\n" \
  "991: .asciz \"stapsdt\"\n" \
  "992: .balign 4\n" \
  "993: .8byte 990b\n.8byte _.stapsdt.base\n.8byte 0\n" \
  ".asciz \"" PROVIDER "\"\n" \
  ".asciz \"" name "\"\n" \
  ".asciz \"" arguments "\"\n" \
  "994: .balign 4\n" \
  ".popsection\n" \
  ".ifndef _.stapsdt.base\n" \
  ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
  ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n" \
  ".size _.stapsdt.base, 1\n.popsection\n.endif\n"
